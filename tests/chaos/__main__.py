"""Chaos for minutes: `python -m tests.chaos [--seconds 300] [--seed 1]`, or `make chaos ARGS="--seed 7"`.

Never asserts a time. Invariant: the exit code is 0 only if nothing was lost, nothing ran twice, and all came to an end.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from dataclasses import fields
from pathlib import Path

from tests.chaos.weather import Chaos


def main() -> int:
    """Play one seed and say what was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Faults, and the count afterwards.")
    parser.add_argument("--seconds", type=float, default=300.0, help="how long faults go on (default: 300)")
    parser.add_argument("--seed", type=int, default=1, help="which faults, in which order (default: 1)")
    parser.add_argument("--replicas", type=int, default=3, help="how many (default: 3)")
    asked = parser.parse_args()
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="clickclock-chaos-") as folder:
        chaos = Chaos(Path(folder), asked.seed, asked.seconds, asked.replicas, _say)
        verdict = asyncio.run(chaos.play())
        _say(f"faults: {', '.join(f'{count} × {what}' for what, count in sorted(chaos.befell.items()))}")
        _say(f"accepted from callers: {len(chaos.accepted)}")
        for each in fields(verdict):
            if each.name != "faults":
                _say(f"{each.name}: {getattr(verdict, each.name)}")
        for fault in verdict.faults:
            _say(fault)
        if verdict.faults:
            for log in sorted(Path(folder).glob("replica-*/log")):
                _say(f"--- {log.parent.name}\n{log.read_text(encoding='utf-8')[-4000:]}")
        _say("all is well" if not verdict.faults else f"{len(verdict.faults)} faults")
    return 1 if verdict.faults else 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
