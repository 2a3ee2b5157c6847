"""Where this user's own settings are, which the command line and the client read.

Never reads them. Invariant: this costs no import, because every command asks it.

>>> contexts_path().endswith(".toml")
True
"""

import os

_VARIABLE = "CLICKCLOCK_CONTEXTS"


def contexts_path() -> str:
    """The file of contexts: as `CLICKCLOCK_CONTEXTS` says, or `contexts.toml` in the folder of settings."""
    variables = os.environ  # noqa: TID251 (it is the caller's, not a setting of the service)
    folder = variables.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")  # noqa: PTH111 (costs no import)
    return variables.get(_VARIABLE) or f"{folder}/clickclock/contexts.toml"


def has_contexts() -> bool:
    """Whether this user has any."""
    return os.path.exists(contexts_path())  # noqa: PTH110 (as above)
