"""What one may do: permissions, how far each reaches, and the roles that hold them. One table, pure.

Never knows who asks (`principal.py`) and never knows a path: each operation names its permission where it is declared.
Invariant: a permission has one reach, and every role's permissions are in `ROLES`.

>>> Permission.JOB_WRITE in ROLES[Role.EDITOR], Permission.JOB_WRITE in ROLES[Role.OPERATOR]
(True, False)
"""

from collections.abc import Mapping
from enum import Enum, StrEnum
from typing import Final


class Reach(Enum):
    """What a grant must cover for a permission to hold."""

    APPLICATION = "application"
    """The application of the thing."""
    CLIENT = "client"
    """The client account of the thing."""
    INSTALLATION = "installation"
    """All applications and all clients: the thing belongs to all of them."""
    ANYWHERE = "anywhere"
    """Nothing: the thing says nothing about an application or a client."""


class Permission(StrEnum):
    """A verb on a kind of thing."""

    WHOAMI = "whoami"
    DESCRIPTION_READ = "description.read"
    JOB_READ = "job.read"
    JOB_WRITE = "job.write"
    SCHEDULE_READ = "schedule.read"
    SCHEDULE_PAUSE = "schedule.pause"
    SCHEDULE_WRITE = "schedule.write"
    TRIGGER_READ = "trigger.read"
    TRIGGER_CREATE = "trigger.create"
    TRIGGER_CANCEL = "trigger.cancel"
    BACKFILL_READ = "backfill.read"
    BACKFILL_WRITE = "backfill.write"
    LOG_READ = "log.read"
    STATISTICS_READ = "statistics.read"
    EVENT_READ = "event.read"
    ALARM_READ = "alarm.read"
    ALARM_ACKNOWLEDGE = "alarm.acknowledge"
    SILENCE_READ = "silence.read"
    SILENCE_WRITE = "silence.write"
    APPLICATION_READ = "application.read"
    APPLICATION_WRITE = "application.write"
    GROUP_READ = "group.read"
    GROUP_WRITE = "group.write"
    CALENDAR_READ = "calendar.read"
    CALENDAR_WRITE = "calendar.write"
    MAPPING_READ = "mapping.read"
    MAPPING_WRITE = "mapping.write"
    NOTIFICATION_READ = "notification.read"
    NOTIFICATION_WRITE = "notification.write"
    CLUSTER_READ = "cluster.read"
    METRICS_READ = "metrics.read"
    AUDIT_READ = "audit.read"
    SETTING_READ = "setting.read"
    TOKEN_READ = "token.read"  # noqa: S105 (the name of a permission)
    TOKEN_WRITE = "token.write"  # noqa: S105 (as above)
    REPORT_READ = "report.read"
    PROOF_READ = "proof.read"
    VERSION_READ = "version.read"
    CLICK_READ = "click.read"
    CLICK_CHECK = "click.check"
    ORDER_SEND = "order.send"


_OF_CLIENTS: Final = frozenset(
    {
        Permission.REPORT_READ,
        Permission.PROOF_READ,
        Permission.CLICK_READ,
        Permission.CLICK_CHECK,
        Permission.ORDER_SEND,
    }
)
_OF_THE_INSTALLATION: Final = frozenset(
    {
        Permission.GROUP_WRITE,
        Permission.CALENDAR_WRITE,
        Permission.MAPPING_WRITE,
        Permission.NOTIFICATION_READ,
        Permission.NOTIFICATION_WRITE,
        Permission.METRICS_READ,
        Permission.AUDIT_READ,
        Permission.SETTING_READ,
        Permission.TOKEN_READ,
        Permission.TOKEN_WRITE,
    }
)
_OF_NOBODY: Final = frozenset(
    {
        Permission.WHOAMI,
        Permission.DESCRIPTION_READ,
        Permission.GROUP_READ,
        Permission.CALENDAR_READ,
        Permission.MAPPING_READ,
        Permission.VERSION_READ,
    }
)


def _reach(permission: Permission) -> Reach:
    if permission in _OF_CLIENTS:
        return Reach.CLIENT
    if permission in _OF_THE_INSTALLATION:
        return Reach.INSTALLATION
    return Reach.ANYWHERE if permission in _OF_NOBODY else Reach.APPLICATION


REACHES: Final[Mapping[Permission, Reach]] = {each: _reach(each) for each in Permission}
"""What a grant must cover, by permission."""


class Role(StrEnum):
    """A named set of permissions."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    ANALYST = "analyst"
    MONITOR = "monitor"
    INGEST = "ingest"
    ADMIN = "admin"


_EVERYBODY: Final = frozenset({Permission.WHOAMI, Permission.DESCRIPTION_READ})
_VIEWER: Final = _EVERYBODY | {
    Permission.JOB_READ,
    Permission.SCHEDULE_READ,
    Permission.TRIGGER_READ,
    Permission.BACKFILL_READ,
    Permission.LOG_READ,
    Permission.STATISTICS_READ,
    Permission.EVENT_READ,
    Permission.ALARM_READ,
    Permission.SILENCE_READ,
    Permission.APPLICATION_READ,
    Permission.GROUP_READ,
    Permission.CALENDAR_READ,
    Permission.MAPPING_READ,
    Permission.CLUSTER_READ,
}
_OPERATOR: Final = _VIEWER | {
    Permission.TRIGGER_CREATE,
    Permission.TRIGGER_CANCEL,
    Permission.SCHEDULE_PAUSE,
    Permission.BACKFILL_WRITE,
    Permission.ALARM_ACKNOWLEDGE,
    Permission.SILENCE_WRITE,
}
ROLES: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.VIEWER: _VIEWER,
    Role.OPERATOR: _OPERATOR,
    Role.EDITOR: _OPERATOR | {Permission.JOB_WRITE, Permission.SCHEDULE_WRITE, Permission.APPLICATION_WRITE},
    Role.ANALYST: _EVERYBODY
    | {
        Permission.REPORT_READ,
        Permission.PROOF_READ,
        Permission.VERSION_READ,
        Permission.CLICK_READ,
        Permission.CLICK_CHECK,
    },
    Role.MONITOR: _EVERYBODY | {Permission.CLUSTER_READ, Permission.METRICS_READ},
    Role.INGEST: _EVERYBODY | {Permission.ORDER_SEND},
    Role.ADMIN: frozenset(Permission) - {Permission.ORDER_SEND},
}
"""What each role may do, in its scope."""
