"""What goes wrong with clicks and orders, a sentence each.

Never knows a status code. Invariant: `Transient` means that the caller's same request may work later.

>>> issubclass(JournalFailing, Transient)
True
"""

from clickclock.foundation.errors import Permanent, Transient


class JournalFailing(Transient):
    """The journal's disk refuses to write; free some space or mend it, and send the request again."""

    code = "journalFailing"


class JournalBusy(Transient):
    """Too many requests wait for the disk; send the request again in a moment."""

    code = "journalBusy"


class JournalTaken(Permanent):
    """Another process writes this journal; stop it, or give this one a folder of its own."""

    code = "journalTaken"


class JournalDamaged(Permanent):
    """The journal is damaged in the middle, where no crash could have cut it; restore the file from a copy."""

    code = "journalDamaged"


class LakeUnreachable(Transient):
    """The lake does not answer; nothing was lost, and what was to be written is tried again."""

    code = "lakeUnreachable"
