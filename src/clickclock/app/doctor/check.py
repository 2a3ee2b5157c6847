"""One thing that the doctor looked at: how it is, what was found, and, if it is not well, what to do.

Never looks at anything. Invariant: every check has its line in `CHECKS`, and every one that is not well a remedy.

>>> ok("diskSync", "A write is on disk after 0.4 ms.").result
<Result.OK: 'ok'>
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from clickclock.foundation.errors import ConfigurationError


class Result(StrEnum):
    """How it is."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


CHECKS: Mapping[str, str] = {
    "configuration": "Settings, the tables of clusters, targets and their secrets' files, examples.",
    "certificate": "Whether the certificate of both ports can be used, and when it ends; who may read its key.",
    "service": "Whether the service answers; if not, who has its port or its data folder.",
    "findings": "What the scanner finds; asked of the service, or, without it, looked for in the store.",
    "dataFolder": "Whether the data folder is there, can be written, and is closed to others.",
    "serviceUser": "Whether the service runs as root, and so does every job that has no user of its own.",
    "diskSpace": "Bytes and files that are free there.",
    "diskSync": "How long a small write takes to be on disk.",
    "timeZones": "Whether time zones are known, and how old that knowledge is.",
    "backup": "When the last backup of the data folder was verified, where backups are configured.",
    "supervisor": "Whether the supervisor of this machine's jobs lives, where a service has the data folder.",
    "store": "Whether the database answers, and is the one that the data folder knows.",
    "storeRevision": "Whether its tables fit this program.",
    "storeIntegrity": "SQLite: whether the file is whole (`PRAGMA quick_check`, which reads all of it).",
    "storeClock": "PostgreSQL: how far its clock, which counts, is from this machine's.",
    "clusters": "Whether container engines and Kubernetes' API servers answer; with the service up, it says so itself.",
    "clickPort": "Whether collectors have their port; if not, who has it.",
    "journals": "Whether what the collectors wrote is whole (a second of reading), and compaction keeps up with it.",
    "lake": "Whether the lake can be read; in a folder, also whether all of its files are there.",
    "visitors": "Whether the last day's clicks show the visitor's address and agent, which servers have to pass on.",
}
"""Every check, with what it looks at."""


class Check(msgspec.Struct, frozen=True):
    """One of them, as it was found."""

    check: str
    result: Result
    found: str
    remedy: str = ""

    def __post_init__(self) -> None:
        assert self.check in CHECKS
        assert self.result is Result.OK or self.remedy


def ok(check: str, found: str) -> Check:
    """It is well."""
    return Check(check, Result.OK, found)


def warn(check: str, found: str, remedy: str) -> Check:
    """Somebody should look; all still works."""
    return Check(check, Result.WARN, found, remedy)


def fail(check: str, found: str, remedy: str) -> Check:
    """Something does not work, or soon will not."""
    return Check(check, Result.FAIL, found, remedy)


def unusable(error: ConfigurationError) -> list[Check]:
    """Every fault of a configuration that is not usable."""
    remedy = "Fix this setting; `clickclock check-config` shows where each comes from."
    return [fail("configuration", f"{each.field}: {each.message}", remedy) for each in error.faults]
