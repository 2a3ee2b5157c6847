"""`clickclock demo`: a small shop's clicks and orders, sent, credited and reported before your eyes.

Never touches anything but a client id of its own, `demo-shop`. Invariant: it does what any user could, over HTTP.

>>> demo.name
'demo'
"""

import click

from clickclock.cli.calling import NoService, headers, service
from clickclock.cli.place import ca_file_of
from clickclock.cli.program import address
from clickclock.cli.progress import progress
from clickclock.cli.tables import table

REPORT = table(
    "report.rows",
    ("model", "model"),
    ("channel", "channel"),
    ("clicks", "clicks"),
    ("people", "people"),
    ("orders", "orders"),
    ("credited orders", "conversions"),
    ("credit", "credit"),
    ("refunds", "refunds"),
    ("currency", "currency"),
    title="What the ads of demo-shop earned, by four models",
)


@click.command()
@click.option(
    "--click-url",
    envvar="CLICKCLOCK_CLICK_URL",
    default="http://127.0.0.1:8081",
    show_default=True,
    show_envvar=True,
    callback=address,
    help="Where the collector is.",
)
@click.pass_context
def demo(ctx: click.Context, /, click_url: str) -> None:
    """Send a small shop's clicks and orders, and credit them."""
    # Here and not at the top, because HTTP takes longer to load than all the rest together.
    import httpx  # noqa: PLC0415 (see the line above)

    from clickclock.demo import CLIENT_ID, credited, send, small_shop  # noqa: PLC0415 (see the line above)
    from clickclock.foundation.clock import SystemClock  # noqa: PLC0415 (see the line above)
    from clickclock.foundation.errors import ClickclockError  # noqa: PLC0415 (see the line above)

    clock = SystemClock()
    shop = small_shop(clock.now())
    try:
        with progress("Sending clicks and orders"):
            send(shop, click_url, headers(), ca_file_of(ctx))
    except httpx.HTTPStatusError as error:
        sentence = (
            f"{click_url} does not take a shop's own clicks (it answers {error.response.status_code}); start it with "
            "--click-profile open, or give another --click-url."
        )
        raise click.ClickException(sentence) from error
    except httpx.HTTPError as error:
        raise NoService(f"{click_url} does not take clicks ({error}); is `clickclock serve` running?") from error
    order = shop.orders[-1]["order_id"]
    click.echo(f"{len(shop.clicks)} clicks and {len(shop.orders)} messages about orders were sent and are on disk.")
    click.echo("Segments are sealed, compacted and credited now, by jobs of the application attribution …")
    with service(ctx.obj) as client:
        try:
            with progress("Crediting"):
                report = credited(client, shop, clock)
            REPORT(report)
        except ClickclockError as error:
            raise click.ClickException(str(error)) from error
    click.echo(
        f"\nWhy order {order} is credited as it is: clickclock attribution order {order} --client-id {CLIENT_ID}"
    )
