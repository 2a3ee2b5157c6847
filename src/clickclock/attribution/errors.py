"""Errors about clicks and orders, a sentence each.

Never knows a status code. Invariant: `Transient` means that the caller's same request may work later.

>>> issubclass(JournalFailing, Transient)
True
"""

from clickclock.foundation.errors import NotFound, Permanent, Transient


class JournalFailing(Transient):
    """The journal's disk refuses to write; free some space or fix it, and send the request again."""

    code = "journalFailing"


class JournalTaken(Permanent):
    """Another process writes this journal; stop it, or give this one a folder of its own."""

    code = "journalTaken"


class JournalDamaged(Permanent):
    """The journal is damaged in the middle, where no crash could have cut it; restore the file from a copy."""

    code = "journalDamaged"


class LakeUnreachable(Transient):
    """The lake does not answer; nothing was lost, and the write is tried again."""

    code = "lakeUnreachable"


class CompactionKilled(Transient):
    """A process that wrote for the lake was killed, perhaps for want of memory; nothing was lost, so compact again."""

    code = "compactionKilled"


class VersionGone(NotFound):
    """This version is no longer in the lake: its files were deleted; ask for a later one."""

    code = "versionGone"


class RunOvertaken(Transient):
    """Another run has just changed what this one builds on; nothing of this one was published, so run it again."""

    code = "runOvertaken"


class EngineMissing(Permanent):
    """This engine is not installed; install what it needs, or choose another engine."""

    code = "engineMissing"


class EngineFailing(Transient):
    """The engine could not do its work; its message says why, and nothing of the run was published."""

    code = "engineFailing"


class ErasureUnfinished(Transient):
    """What is to be erased is still there somewhere, or keeps coming back; nothing else was lost, so run it again."""

    code = "erasureUnfinished"


class ModelOverwhelmed(Permanent):
    """A model cannot learn from so much; take other settings of it, or leave it out of `attribution_models`."""

    code = "modelOverwhelmed"


class ModelFailing(Permanent):
    """A model does not answer as it must; have it fixed, or leave it out of `attribution_models`."""

    code = "modelFailing"
