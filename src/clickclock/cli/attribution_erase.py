"""`clickclock attribution erase`: what somebody is known by goes from everywhere, and there is a receipt.

Never asks the service: it works on the data folder, beside collectors that run. Invariants: the exit code is 0 only
if every file was read again and nothing was found; what was interrupted is done by the next call, whoever it is about;
with `--json`, standard output is the receipts and nothing else.

>>> erase.name
'erase'
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import print_json
from clickclock.cli.exit_codes import INTERRUPTED
from clickclock.cli.progress import progress
from clickclock.cli.rendering import counted
from clickclock.cli.settings import OF_LAKE, configuration, expect_lake, settings
from clickclock.foundation.errors import ClickclockError, ConfigurationError

if TYPE_CHECKING:
    from clickclock.attribution.erasing.erasure import Identifier
    from clickclock.attribution.erasing.receipt import Receipt

KINDS = ("cli_ubid", "device_id", "gaid", "idfa", "customer_id", "order_id")


@click.command()
@click.option("--client-id", help="The client whose clicks and orders they are.")
@click.option("--cli-ubid", help="A browser's id.")
@click.option("--device-id", help="A device's id, which is the same as its GAID or IDFA.")
@click.option("--gaid", help="An Android advertising id.")
@click.option("--idfa", help="An iOS advertising id.")
@click.option("--customer-id", help="A customer's id, as the client says it in identifications.")
@click.option("--order-id", help="An order, with all messages about it.")
@click.option(
    "--with-person", is_flag=True, help="Also all other identifiers of the same person, and that person's orders."
)
@click.option("--reason", default="", help="Who asked for it, or why; recorded in the receipt.")
@settings(OF_LAKE)
@click.option("--json", "as_json", is_flag=True, help="Print the receipts as JSON.")
@click.pass_context
def erase(
    ctx: click.Context,
    /,
    config: Path | None,
    client_id: str | None,
    with_person: bool,
    reason: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Erase an identifier for good.

    From the journals, the lake with its old versions, results and exports, with a receipt. Without an identifier,
    continue an erasure that was interrupted.
    """
    asked = _asked({kind: options.pop(kind) for kind in KINDS}, client_id, reason)
    with configuration(config, options) as loaded:
        expect_lake(loaded)
        # Here and not at the top, so that neither the help of other commands nor a mistyped folder waits for it.
        from clickclock.app import erasing  # noqa: PLC0415 (see the line above)

        try:
            with progress("Erasing, and reading every file again"):
                made = erasing.erase(loaded, asked, client_id or "", with_person=with_person, reason=reason)
        except ConfigurationError:
            raise
        except ClickclockError as error:
            sentence = f"{error} There is no receipt yet; run the same command again to continue."
            raise click.ClickException(sentence) from error
        except KeyboardInterrupt:
            click.echo("Interrupted; run the same command again to continue.", err=True)
            ctx.exit(INTERRUPTED)
    if as_json:
        print_json({"receipts": [each.wire for each in made]})
    elif not made:
        click.echo("There is no erasure to continue; name an identifier.")
    else:
        for each in made:
            tell(each)


def _asked(values: dict[str, str | None], client_id: str | None, reason: str) -> "Identifier | None":
    from clickclock.attribution.erasing.erasure import Identifier, Sought  # noqa: PLC0415 (loaded when it is used)

    identifiers = [Identifier(kind, value) for kind, value in values.items() if value is not None]
    if not identifiers and client_id is not None:
        raise click.UsageError("Give an identifier as well; without any option, an interrupted erasure is continued.")
    if not identifiers:
        return None
    if len(identifiers) > 1:
        raise click.UsageError("Give one identifier; --with-person finds the others, or call it once for each.")
    if not client_id:
        raise click.UsageError("Give --client-id: identifiers of different clients are different.")
    if not identifiers[0].value.strip():
        raise click.UsageError("The identifier is empty.")
    if Sought(client_id, identifiers).is_in(reason):
        raise click.UsageError("The reason contains the identifier, which the receipt would keep; reword it.")
    return identifiers[0]


def tell(receipt: "Receipt") -> None:
    """A receipt for people."""
    places = ", ".join(f"{count:,} of {place}" for place, count in receipt.rows.items() if count)
    click.echo(f"Erased {counted(receipt.total, 'row')}{f': {places}' if places else ''}.")
    if receipt.identifiers:
        others = len(receipt.identifiers) - 1
        if others:
            click.echo(f"Other identifiers of the same person, erased with it: {others:,}.")
        size_mb = receipt.verified_bytes / 1e6
        click.echo(f"Files read again and found free of it: {receipt.verified_files:,} ({size_mb:,.1f} MB).")
    click.echo(f"Receipt {receipt.id}, {receipt.created_at}.")
