"""`clickclock clicks tail`: clicks, rejections and orders as they arrive, a line each.

Never leaves out why something was refused. Invariants: an interrupt ends the watching and nothing else; standard
output has what was seen, and standard error what is said about the watching.

>>> tail.name
'tail'
"""

import functools
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import service
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.rendering import WIDTH, plain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from clickclock.client import Sighting

HINTS = (
    *("gclid", "gbraid", "wbraid", "gad_source", "uclid", "fbclid", "fb_campaign_id", "fb_adset_id", "fb_ad_id"),
    *("source", "utm_source", "utm_medium", "utm_campaign", "atag", "asvt"),
)
"""Parameters that say where a click comes from, the surest first."""
HINT_CHARACTERS_MAX = 40
STYLES = {"click": "green", "view": "green", "rejection": "bold red", "order": "cyan", "other": "dim"}


@click.command()
@click.option("--client-id", help="Only those of this client.")
@click.option("--rejections", is_flag=True, help="Only what was refused.")
@click.option("--after", help="Continue after this position, as --json shows it; from now on if not given.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object on each line.")
@click.pass_context
def tail(ctx: click.Context, client_id: str | None, rejections: bool, after: str | None, as_json: bool) -> None:
    """Show clicks, views, rejections and orders as they arrive."""
    kind = "rejection" if rejections else None
    with service(ctx.obj) as client:
        try:
            for seen in client.follow_clicks(after=after, clientId=client_id, kind=kind):
                if as_json:
                    if seen.seen != "watching":
                        line = {"seen": seen.seen, **seen.fields, "position": seen.position}
                        click.echo(json.dumps(line))  # in ASCII: what was refused may not be Unicode
                else:
                    _show(seen)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)


def _show(seen: "Sighting") -> None:
    match seen.seen:
        case "watching":
            click.echo("Watching; press Ctrl-C to stop.", err=True)
        case "missed":
            entries = seen.fields["entries"]
            count = (
                "Some entries are" if entries is None else "1 entry is" if entries == 1 else f"{entries} entries are"
            )
            click.echo(f"{count} left out here: {plain(seen.fields['message'])}", err=True)
        case _:
            console = _console()
            with console.capture() as captured:
                console.print(line_of(seen.seen, seen.fields))
            click.echo(captured.get(), nl=False)


def line_of(seen: str, fields: dict[str, Any]) -> "Text":
    """One line for what was seen, and one more for each fault."""
    from rich.text import Text  # noqa: PLC0415 (loaded when it is used)

    style = STYLES.get(seen, "")
    received = datetime.fromisoformat(fields["receivedAt"]).astimezone()
    parts = [
        (f"{received:%H:%M:%S}.{received.microsecond // 1000:03}", "dim"),
        (f"{_what(seen, fields):<9}", style),
        (plain(fields["clientId"]) or "-", "bold"),
        (f"seller={plain(fields['sellerId']) or '-'}", ""),
        (f"{fields['identifierName'] or 'identifier'}={plain(fields['identifier']) or '-'}", ""),
        *((hint, "blue") for hint in _hints(fields)),
    ]
    if fields.get("flags"):
        parts.append((" ".join(map(plain, fields["flags"])), "yellow"))
    text = Text("  ").join(Text(plain(part), style=each) for part, each in parts)
    for fault in fields.get("faults", ()):
        text.append(f"\n    {plain(fault.get('field')) or 'request'}: {plain(fault.get('message'))}", style="red")
    return text


def _what(seen: str, fields: dict[str, Any]) -> str:
    return "refused" if seen == "rejection" else plain((fields.get("parameters") or {}).get("event_name")) or seen


def _hints(fields: dict[str, Any]) -> list[str]:
    order = fields.get("order")
    if isinstance(order, dict):
        amount = f"{plain(order.get('amount'))} {plain(order.get('currency'))}"
        return [f"order={plain(order.get('order_id'))}", amount.strip(), plain(order.get("status"))]
    parameters = fields.get("parameters") or {}
    return [f"{name}={_short(plain(parameters[name]))}" for name in HINTS if parameters.get(name)]


def _short(value: str) -> str:
    return value if len(value) <= HINT_CHARACTERS_MAX else value[: HINT_CHARACTERS_MAX - 1] + "…"


@functools.cache
def _console() -> "Console":
    from rich.console import Console  # noqa: PLC0415 (loaded when it is used)

    return Console(width=WIDTH, highlight=False, markup=False, emoji=False, soft_wrap=True)
