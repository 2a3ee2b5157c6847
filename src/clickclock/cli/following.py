"""Seeing a trigger through in a terminal: its output as it comes, interrupts, and its end as an exit code.

Never ends a job unless it was asked to: an interrupt lets go, and the job runs on.
Invariant: what a job wrote goes to standard output as it is, but for what a terminal would obey; what is said about it
goes to standard error.

>>> exit_code({"state": "failed", "exitCode": None, "signal": 9})
137
"""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

import click

from clickclock.cli.exit_codes import INTERRUPTED, SIGNAL_BASE
from clickclock.cli.rendering import duration, plain

if TYPE_CHECKING:
    from clickclock.client import AttemptEnd, Client, LogText, Payload

EXIT_CODES = {"succeeded": 0, "cancelled": 121, "lost": 122, "skipped": 123, "timedOut": 124}
"""By final state; 124 is what timeout(1) says. A failed trigger has the exit code of its command."""
NOT_STARTED = 127
"""As a shell reports a command that it could not start."""


def exit_code(trigger: "Payload") -> int:
    """What a command that saw a trigger through ends with."""
    if trigger["state"] in EXIT_CODES:
        return EXIT_CODES[trigger["state"]]
    if trigger["signal"] is not None:
        return SIGNAL_BASE + int(trigger["signal"])
    return NOT_STARTED if trigger["exitCode"] is None else int(trigger["exitCode"])


def see_through(client: "Client", trigger_id: str, *, cancel_on_interrupt: bool, log_to_stderr: bool) -> "Payload":
    """Show a trigger's output until it has finished; returns the answer that says how. May exit with 130."""
    shown = Shown(log_to_stderr)
    try:
        shown.all_of(client.follow_trigger(trigger_id))
    except KeyboardInterrupt:
        if not cancel_on_interrupt:
            _let_go(trigger_id)
        click.echo(f"Asking {trigger_id} to end.", err=True)
        _cancel(client, trigger_id)
        try:
            shown.all_of(client.follow_trigger(trigger_id, shown.attempt, shown.offset))
        except KeyboardInterrupt:
            _let_go(trigger_id)
    payload = client.get_trigger(trigger_id)
    click.echo(_ending(payload["triggers"][0]), err=True)
    return payload


class Shown:
    """How far a trigger's output has been shown."""

    def __init__(self, to_stderr: bool, *, is_raw: bool = False) -> None:
        self.attempt = 1
        self.offset = 0
        self._to_stderr = to_stderr
        self._is_raw = is_raw

    def all_of(self, output: Iterator["LogText | AttemptEnd"]) -> None:
        """Show output as it comes."""
        from clickclock.client import LogText  # noqa: PLC0415 (loaded long since: the pieces come from there)

        for piece in output:
            if isinstance(piece, LogText):
                # Bytes pass by what guards a terminal; and a pipe gets the colours as well.
                said = piece.text.encode() if self._is_raw else piece.text
                click.echo(said, nl=False, err=self._to_stderr, color=True)
                self.attempt, self.offset = piece.attempt, piece.next_offset
            else:
                if piece.state not in {None, "succeeded"}:
                    click.echo(f"Attempt {piece.attempt} {piece.state}.", err=True)
                self.attempt, self.offset = piece.attempt + 1, 0


def _let_go(trigger_id: str) -> NoReturn:
    click.echo(
        f"\nNo longer watching; the job keeps running. Watch it with: clickclock log {trigger_id} --follow\n"
        f"Cancel it with: clickclock triggers cancel {trigger_id}",
        err=True,
    )
    click.get_current_context().exit(INTERRUPTED)


def _cancel(client: "Client", trigger_id: str) -> None:
    from clickclock.client import Refused  # noqa: PLC0415 (loaded long since, and only here when it is used)

    with contextlib.suppress(Refused):  # it has just finished
        client.cancel_trigger(trigger_id)


def _ending(trigger: "Payload") -> str:
    took = f" after {duration(trigger['durationMs'])}" if trigger["durationMs"] is not None else ""
    message = f": {plain(trigger['message'])}" if trigger["message"] else "."
    return f"Trigger {trigger['triggerId']} {trigger['state']}{took}{message}"
