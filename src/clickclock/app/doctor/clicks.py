"""What the collectors wrote and where it goes: their port, their journals, the lake.

Never cuts, seals or deletes anything. Invariant: a journal can be looked at while it is written.
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

from clickclock.app.certificates import own_trust
from clickclock.app.doctor.check import Check, Result, fail, ok, warn
from clickclock.app.doctor.holders import holder_of, listener_on, ports_of
from clickclock.app.doctor.visitors import visitors
from clickclock.app.lake import lake_of
from clickclock.attribution import journal
from clickclock.attribution.errors import JournalDamaged, LakeUnreachable
from clickclock.attribution.lake import CLICKS, CREDITS, DERIVED, TABLES, Lake
from clickclock.foundation.config import Config

WAITS_S_WARN = 15 * 60
"""Compaction runs each minute: what has waited for longer will wait for ever."""
VERIFY_S = 1.0
"""So long segments are read whole; `clickclock journal verify` reads all of them."""
HEALTH_S = 10.0
"""A collector that starts again waits for its journal."""
STRANGER_S = 2.0
"""Who has the port and is no collector may say nothing for ever."""
_MIB = 2**20


def clicks(config: Config, now_ms: int) -> Iterator[Check]:
    """All of it; nothing where no clicks are taken."""
    if not config.clicks:
        return
    yield from _port(config)
    yield from journals(config, now_ms)
    lake = lake_check(config)
    yield lake
    if lake.result is Result.OK:
        yield visitors(lake_of(config), config.journal_dir)


def _port(config: Config) -> Iterator[Check]:
    collectors = holder_of(config.data_dir / "collectors-lock")
    config = _as_listening(config, collectors)
    if config.click_port == 0:
        return
    listener = listener_on(config.click_port)
    if collectors is not None and listener is not None:
        # The parent of collectors has the lock and the port, and keeps them when the collectors die.
        if (wrong := _unhealthy(config)) is None:
            yield ok("clickPort", f"Clicks are taken on port {config.click_port}.")
        else:
            remedy = (
                "See the log of the service, or of `clickclock collect`: it says what ends or stops the collectors."
            )
            yield fail("clickPort", f"No clicks are taken on port {config.click_port}: {wrong}.", remedy)
    elif listener is not None and _takes_clicks(config, config.click_port, STRANGER_S):
        found = f"Port {config.click_port} takes clicks, into another data folder than {config.data_dir}."
        yield warn("clickPort", found, "Give the --data-dir or the --config of the service that is to be looked at.")
    elif listener is not None:
        found = f"Nobody collects into {config.data_dir}, and port {config.click_port} is taken by {listener}."
        yield fail("clickPort", found, "End that process, or give another --click-port.")
    elif collectors is not None:
        found = f"The collectors of {config.data_dir} run, and nobody listens on port {config.click_port}."
        yield fail("clickPort", found, "See their log; if they were given another --click-port, give it here as well.")
    else:
        yield ok("clickPort", f"Port {config.click_port} is free, and no collector runs.")


def _as_listening(config: Config, collectors: int | None) -> Config:
    """The configuration with the port that the collectors of the folder listen on, if they were given another."""
    ports = ports_of(collectors) if collectors else set()
    if config.click_port in ports:
        return config
    found = next((port for port in sorted(ports) if _takes_clicks(config, port)), config.click_port)
    return config.model_copy(update={"click_port": found})


def _takes_clicks(config: Config, port: int, within_s: float = HEALTH_S) -> bool:
    """Whether what answers there is a collector."""
    with contextlib.suppress(httpx.HTTPError, OSError, ValueError, KeyError, TypeError):
        told = _get(config, f"{_address(config, port)}/openapi.json", within_s).json()
        return "/aclick" in told["paths"]
    return False


def _address(config: Config, port: int) -> str:
    host = f"[{config.click_host}]" if ":" in config.click_host else config.click_host
    return f"{config.scheme}://{host}:{port}"


def _get(config: Config, url: str, within_s: float = HEALTH_S) -> httpx.Response:
    certificate = config.tls_certificate
    trust = True if certificate is None else own_trust(certificate)
    return httpx.get(url, timeout=within_s, trust_env=False, verify=trust)


def _unhealthy(config: Config) -> str | None:
    """The fault of the collector that answers on the port; None if it is well."""
    url = f"{_address(config, config.click_port)}/healthz"
    try:
        answer = _get(config, url)
    except (httpx.HTTPError, OSError) as error:
        return f"{url} does not answer ({type(error).__name__})"
    return None if answer.is_success else f"{url} answers {answer.status_code}"


def journals(config: Config, now_ms: int) -> Iterator[Check]:
    """Whether they are whole, as far as a second of reading tells, and compacted in time."""
    damaged: list[str] = []
    waiting, waiting_bytes, segments, left = 0, 0, 0, 0
    whole: list[tuple[int, journal.Segment]] = []
    for slot in journal.slots(config.journal_dir):
        is_taken = journal.is_taken(slot)
        for segment in journal.segments(slot):
            segments += 1
            try:
                seen = journal.inspect(segment)
            except FileNotFoundError:  # compacted just now
                continue
            except (JournalDamaged, OSError) as error:
                damaged.append(f"{segment.path}: {error}")
                continue
            if seen.state == "damaged":
                damaged.append(str(segment.path))
            left += seen.state == "live" and not is_taken
            if segment.state is journal.State.SEALED:
                waiting, waiting_bytes = waiting + 1, waiting_bytes + seen.bytes
                if seen.state == "sealed" and seen.last_ms is not None:
                    whole.append((seen.last_ms, segment))
    oldest_ms = min([now_ms, *(last_ms for last_ms, _ in whole)])
    waited_s = (now_ms - oldest_ms) / 1000
    verified, found_damaged = _verified([segment for _, segment in sorted(whole)])
    damaged += found_damaged
    if damaged:
        found = f"Damaged segments: {len(damaged)}; the first is {damaged[0]}."
        remedy = "Look at the disk, then bring back what is whole in them: `clickclock journal salvage`."
        yield fail("journals", found, remedy)
    if waited_s > WAITS_S_WARN:
        found = f"Sealed segments waiting for compaction: {waiting} ({waiting_bytes / _MIB:.1f} MiB), "
        found += f"the oldest for {waited_s:.0f} s."
        remedy = "See why with `clickclock triggers list attribution`, or run `clickclock compact` on this data folder."
        yield warn("journals", found, remedy)
    if not damaged and waited_s <= WAITS_S_WARN:
        crash = f"; left by a crash, for the next collector to seal: {left}" if left else ""
        unread = f"; read whole: {verified}, not looked into: {len(whole) - verified}" if whole else ""
        yield ok("journals", f"Segments: {segments}, {waiting} of them sealed{unread}{crash}.")


def _verified(segments: list[journal.Segment]) -> tuple[int, list[str]]:
    """How many were read whole within `VERIFY_S`, one at least, and which of them are damaged: the first come first."""
    damaged: list[str] = []
    until_s = time.monotonic() + VERIFY_S
    for number, segment in enumerate(segments):
        if number and time.monotonic() > until_s:
            return number, damaged
        with contextlib.suppress(OSError):  # compacted just now, or another check reports it
            if damages := journal.verify(segment):
                damaged.append(f"{segment.path} ({damages[0].sentence} at byte {damages[0].offset:,})")
    return len(segments), damaged


def _missing(lake: Lake) -> list[str]:
    """The files of all tables that are not there, if they are in a folder."""
    if "://" in lake.url:
        return []
    names = (*(table.name for table in (*TABLES, *DERIVED)), CREDITS)
    return [path for name in names for path in lake.uris(name) if not Path(path).exists()]


def lake_check(config: Config) -> Check:
    """Whether it can be read and, in a folder, whether all of its files are there."""
    lake = lake_of(config)
    try:
        there = lake.table(CLICKS.name)
        missing = _missing(lake) and _missing(lake)  # what has just been replaced is another one by now
    except LakeUnreachable as error:
        remedy = "Fix `lake_url` and `lake_options`, or bring the object store back; clicks are kept in the journals."
        return fail("lake", str(error), remedy)
    if missing:
        found = f"Files of the lake that are not there: {len(missing)}; the first is {missing[0]}."
        return fail("lake", found, "Restore them from a copy; what reads their tables fails until then.")
    return ok("lake", f"{config.lake} has nothing yet." if there is None else f"{config.lake} can be read.")
