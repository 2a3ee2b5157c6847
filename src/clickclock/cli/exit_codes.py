"""The exit codes that a shell knows.

>>> INTERRUPTED
130
"""

from typing import Final

SIGNAL_BASE: Final = 128
"""As a shell reports a command that a signal ended."""
INTERRUPTED: Final = SIGNAL_BASE + 2
