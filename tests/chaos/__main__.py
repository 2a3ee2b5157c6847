"""Chaos for minutes: `python -m tests.chaos [--seconds 300] [--seed 1]`, or `make chaos ARGS="--seed 7"`.

Never asserts a time. Invariant: the exit code is 0 only if nothing was lost, nothing ran twice, and all came to an end;
with `--broken` only if each broken product was noticed.
"""

import argparse
import asyncio
import contextlib
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from tests.chaos.broken import BROKEN
from tests.chaos.checker import Verdict
from tests.chaos.weather import Chaos
from tests.container_engine import ContainerEngine, container_engine


def main() -> int:
    """Play one seed and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Faults, and the count afterwards.")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long faults go on (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which faults, in which order (default: 1)")
    parser.add_argument("--replicas", type=int, default=3, help="how many on one PostgreSQL (default: 3)")
    parser.add_argument("--shop", action="store_true", help="instead, one service on SQLite with clicks and orders")
    parser.add_argument("--containers", action="store_true", help="run jobs in containers, too (needs Podman)")
    parser.add_argument("--before", type=int, default=0, help="how many of them run the release before (default: 0)")
    parser.add_argument("--broken", choices=["all", *BROKEN], help="break the product, and see that it is noticed")
    asked = parser.parse_args()
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if asked.broken is None:
        return 1 if _play(asked, None).faults else 0
    names = list(BROKEN) if asked.broken == "all" else [asked.broken]
    passed = [name for name in names if not _play(asked, name).faults]
    _say(f"not noticed: {', '.join(passed)}" if passed else f"noticed: {', '.join(names)}")
    return 1 if passed else 0


def _play(asked: argparse.Namespace, broken: str | None) -> Verdict:
    with tempfile.TemporaryDirectory(prefix="clickclock-chaos-") as name, _engine(asked, Path(name)) as engine:
        folder = Path(name)
        if broken is not None:
            _say(f"=== {broken}")
        replicas = 0 if asked.shop else asked.replicas
        chaos = Chaos(folder, asked.seed, asked.seconds, replicas, _say, broken, engine, asked.before)
        verdict = asyncio.run(chaos.play())
        _say(f"faults: {', '.join(f'{count} × {what}' for what, count in sorted(chaos.befell.items()))}")
        said = chaos.said
        _say(
            f"people: {len(said.accepted)} runs by hand, {len(said.cancels)} cancelled, {len(said.pauses)} pauses, "
            f"{len(said.backfilled)} times of the past, {said.edits_answered} changes"
        )
        if chaos.shop is not None:
            _say(f"the shop: {len(chaos.shop.clicked)} clicks, {len(chaos.shop.ordered)} orders")
        for each in fields(verdict):
            if each.name != "faults":
                _say(f"{each.name}: {getattr(verdict, each.name)}")
        for fault in verdict.faults if broken is None else verdict.faults[:3]:
            _say(fault)
        if verdict.faults and broken is None:
            for log in sorted(folder.glob("replica-*/log")):
                _say(f"--- {log.parent.name}\n{log.read_text(encoding='utf-8')[-4000:]}")
        _say("all is well" if not verdict.faults else f"{len(verdict.faults)} faults")
        return verdict


@contextlib.contextmanager
def _engine(asked: argparse.Namespace, folder: Path) -> Iterator[ContainerEngine | None]:
    if not asked.containers:
        yield None
        return
    (folder / "engine").mkdir()
    with container_engine(folder / "engine") as engine:
        yield engine


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
