"""The service, asked over HTTP; and where it does not answer, who has its port or its data folder.

Never looks into the store (`stores.py`). Invariant: the service's own findings are reported in its own words.

>>> service("http://127.0.0.1:1", None).answers
False
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from clickclock.app.doctor.check import Check, Result, fail, ok
from clickclock.app.doctor.holders import holder_of, listener_on, told, works_on
from clickclock.client import Client, Payload, Refused, Unreachable
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.reach import is_loopback

TIMEOUT_S = 10.0
"""It asks its clusters, and waits 2 s for each that does not answer."""
STRANGER = "notTheScheduler"
START = "Start it with `clickclock serve`; running jobs continue and are adopted."


class Asked(msgspec.Struct, frozen=True):
    """What the service said; whether it could look at itself."""

    answers: bool
    checks: list[Check]


class Terms(msgspec.Struct, frozen=True):
    """How to ask: `headers` for a proxy in front of it, a token, and a file of certificates to believe."""

    headers: Mapping[str, str] | None = None
    token: str | None = None
    ca_file: Path | None = None


def service(url: str, data_dir: Path | None, terms: Terms | None = None) -> Asked:
    """Ask. `data_dir` is where the service would be found on this machine, if it is one of this machine."""
    by = terms or Terms()
    try:
        with Client(
            url, timeout_s=TIMEOUT_S, retries=0, headers=by.headers, token=by.token, ca_file=by.ca_file
        ) as client:
            cluster: Payload = client.cluster()["cluster"]
    except Refused as refused:
        if refused.code == STRANGER:
            return Asked(False, [_absent(url, data_dir, refused)])
        remedy = "See its log and fix what it says about the store; the service then recovers by itself."
        return Asked(False, [fail("service", f"It answers at {url}: {refused}", remedy)])
    except ConfigurationError as error:  # the token of the environment
        return Asked(False, [fail("service", f"It was not asked. {error}", "Correct the token, or unset it.")])
    except (Unreachable, KeyError, TypeError) as error:
        return Asked(False, [_absent(url, data_dir, error)])
    versions = ", ".join(sorted({each["version"] for each in cluster["replicas"]}))
    count = len(cluster["replicas"])
    found = f"It answers at {url}: {count} {'replica' if count == 1 else 'replicas'} ({versions})."
    return Asked(True, [ok("service", found), *findings_checks(cluster["findings"])])


def _absent(url: str, data_dir: Path | None, error: Exception) -> Check:
    parts = urlsplit(url)
    listener = listener_on(parts.port or 80) if is_loopback(parts.hostname or "") else None
    serves = None if data_dir is None else holder_of(data_dir / "lock")
    if serves is not None:
        found = f"It does not answer at {url}, and {told(serves)} serves {data_dir}."
        remedy = "If it has another port, give --url; if it hangs, end it and start it again: its jobs keep running."
        return fail("service", found, remedy)
    if listener is not None:
        remedy = "End that process, or give the service another --port."
        return fail("service", f"What answers at {url} is not clickclock but {listener}.", remedy)
    return fail("service", str(error) or f"What answers at {url} is not clickclock.", START)


def findings_checks(findings: Iterable[Payload]) -> list[Check]:
    """Each finding of the scanner as a check; one that is well, if there is none."""
    return [
        Check(
            "findings",
            Result(each["severity"]),
            f"{each['message']} [{each['code']}{_of(each['ids'])}]",
            each["remedy"],
        )
        for each in findings
    ] or [ok("findings", "The scanner finds nothing wrong.")]


def _of(ids: list[str]) -> str:
    return f": {', '.join(ids)}" if ids else ""


def supervisor(data_dir: Path) -> Check:
    """Whether the supervisor lives, if a service has the folder."""
    folder = data_dir / "supervisor"
    try:
        pid = int((folder / "lock").read_text(encoding="ascii"))
    except (OSError, ValueError):
        pid = 0
    if pid and works_on(pid, folder):
        return ok("supervisor", f"It is {told(pid)}.")
    if holder_of(data_dir / "lock") is None:
        return ok("supervisor", "None is running: no service uses the data folder, and none of its jobs runs.")
    remedy = f"The service starts another within seconds; if it cannot, {folder / 'errors'} says why."
    return fail("supervisor", "It is not running, so no job of this machine starts.", remedy)
