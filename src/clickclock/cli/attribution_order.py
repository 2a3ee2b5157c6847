"""`clickclock attribution order`: why an order is credited as it is, as a tree.

Never computes anything. Invariants: every click of the person is in the tree, with what became of it;
what does not agree with what is stored comes first, in red, and the exit code is 1.

>>> order.name
'order'
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.answering import answered
from clickclock.cli.rendering import WIDTH, Payload, counted, plain, share, when
from clickclock.cli.settings import OF_LAKE, settings

if TYPE_CHECKING:
    from rich.tree import Tree

    from clickclock.client import Client
    from clickclock.foundation.config import Config

IN_JOURNEY = "in_journey"
ERASED = "Some of what this was computed with was erased since; the next run credits anew: clickclock attribution run"


@click.command()
@click.argument("order_id")
@click.option("--client-id", required=True, help="The client whose order it is.")
@click.option("--version", type=click.IntRange(min=1), help="Result version; the latest if not given.")
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the proof as JSON.")
def order(
    order_id: str, client_id: str, version: int | None, config: Path | None, as_json: bool, **options: Any
) -> None:
    """Show why an order is credited as it is.

    The proof has its person, every click and its fate, and each model's arithmetic.
    """

    def read(loaded: "Config") -> Payload:
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app.proving import prove  # noqa: PLC0415 (see the line above)

        return prove(loaded, client_id, order_id, version)

    def ask(client: "Client") -> Payload:
        told: Payload = client.proof(client_id, order_id, version)["proof"]
        return told

    proof = answered(ask, read, config, options)
    click.echo(json.dumps(proof, ensure_ascii=False) if as_json else drawn(proof))
    if proof["differs"]:
        is_left = proof["result"]["kind"] == "erasure"
        raise click.ClickException(
            ERASED
            if is_left
            else "What is stored differs from what was just computed; please report it, with the output of --json."
        )


def drawn(proof: Payload) -> str:
    """The proof as a tree of text."""
    from rich.console import Console  # noqa: PLC0415 (loaded when it is used)

    console = Console(width=WIDTH, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(tree(proof))
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def tree(proof: Payload) -> "Tree":
    """The proof as rich draws it."""
    from rich.tree import Tree  # noqa: PLC0415 (loaded when it is used)

    told = proof["order"]
    root = Tree(_text(f"order {proof['orderId']} of {proof['clientId']}", style="bold"))
    root.add(_text(f"{told['amount']} {told['currency']}, {told['status']}, placed {when(told['placedAt'])}"))
    root.add(_text(f"result version {proof['result']['version']} of {when(proof['result']['createdAt'])}"))
    _branch(root, "DIFFERS FROM WHAT IS STORED", map(_difference, proof["differs"]), style="bold red")
    _branch(root, "amendments", map(_amendment, proof["amendments"]))
    _add_person(root, proof)
    touchpoints, views = len(proof["journey"]), sum(each.get("kind") == "view" for each in proof["clicks"])
    seen = f", {counted(views, 'view')}" if views else ""
    count = len(proof["clicks"]) - views
    clicks = root.add(_text(f"{counted(count, 'click')}{seen}, touchpoints among them: {touchpoints:,}"))
    for each in proof["clicks"]:
        _add_click(clicks, each)
    if proof["why"]:
        root.add(_text(f"no credit: {proof['why']}", style="yellow"))
    for credit in proof["credits"]:
        _add_credit(root, credit)
    return root


def _difference(each: Payload) -> str:
    return (
        f"{each['column']} of row {each['place']}: stored {each['stored'] or '-'}, computed {each['computed'] or '-'}"
    )


def _amendment(each: Payload) -> str:
    refunded = f", {each['refunded']} of it refunded" if each["status"] != "completed" else ""
    return f"{when(each['time'])}  {each['amount']} {each['currency']} {each['status']}{refunded}"


def _add_person(root: "Tree", proof: Payload) -> None:
    person = proof["person"]
    if person is not None:
        known = ", ".join(map(_identifier, person["identifiers"]))
        branch = root.add(_text(f"person {person['code']}: {known}"))
        for link in person["links"]:
            one, other = map(_identifier, link["between"])
            names = ("clicks", "orders", "identifications")
            where = [f"{name} {', '.join(link[name])}" for name in names if link[name]]
            _branch(branch, f"{one} is {other}, seen together on", where)
    _branch(root, "shared identifiers, which are nobody's", map(_with_why, proof["sharedIdentifiers"]))
    _branch(root, "crowded devices, which link nobody", map(_with_why, proof["crowdedDevices"]))


def _with_why(each: Payload) -> str:
    return f"{_identifier(each)}: {each['why']}"


def _identifier(each: Payload) -> str:
    return f"{each['kind']} {each['value']}"


def _add_click(branch: "Tree", each: Payload) -> None:
    """Add a click or a view; a service of the release before says nothing of its kind."""
    is_touchpoint = each["fate"] == IN_JOURNEY
    names = [each[name] for name in ("channel", "campaign", "adSet", "ad") if each[name]]
    seen = ", seen" if each.get("kind") == "view" else ""
    line = f"{when(each['time'])}  {' / '.join(names)}{seen}  {each['id']}  {each['fate']}"
    leaf = branch.add(_text(line, style="green" if is_touchpoint else "dim"))
    if not is_touchpoint or each["timeCounted"] != "sent":
        leaf.add(_text(each["why"] + (f" That was {each['cause']}." if each["cause"] else "")))
    if each["apart"]:
        leaf.add(_text(f"not the ad of {each['apart']['click']}: {', '.join(each['apart']['by'])}"))
    left = [flag for flag in each["flags"] if flag != each["fate"]]
    _branch(leaf, "flagged", left)
    _branch(leaf, "rules that were not applied", (rule["why"] for rule in each["notApplied"]))


def _add_credit(root: "Tree", credit: Payload) -> None:
    branch = root.add(_text(f"{credit['model']}: {credit['amount']} {credit['currency']}", style="bold"))
    fitted = credit["fitted"]
    if fitted is not None:
        worth = ", ".join(f"{channel} {conversions:.6g}" for channel, conversions in fitted["channels"].items())
        branch.add(_text(f"channels weigh as their conversions of {fitted['month']}: {worth}"))
    total = credit["sumOfWeights"]
    for each in credit["touchpoints"]:
        sum_ = f"{each['weight']:.6g} / {total:.6g} = {share(each['share'])}"
        exact = f"exactly {each['exact']}, rounded {'up' if each['isRoundedUp'] else 'down'} to "
        exact = "" if each["exact"].rstrip("0") == each["credit"].rstrip("0") else exact
        refund = f", less {each['refund']} refunded" if each["refund"].strip("0.") else ""
        branch.add(_text(f"{each['place']}. {each['channel']}: {sum_}, {exact}{each['credit']}{refund}"))


def _branch(tree: "Tree", title: str, lines: Iterable[str], style: str = "") -> None:
    """A branch, if there is anything on it."""
    lines = list(lines)
    if lines:
        branch = tree.add(_text(title, style))
        for line in lines:
            branch.add(_text(line))


def _text(line: str, style: str = "") -> Any:
    from rich.text import Text  # noqa: PLC0415 (loaded when it is used)

    return Text(plain(line), style=style)
