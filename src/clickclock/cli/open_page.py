"""`clickclock open`: the dashboard, in the browser of whoever sits here, signed in.

Never starts a service. Invariants: standard output is the address alone, so that a script can use it; a secret in it is
behind the `#`, which no browser sends, works once, and is over after a minute.

>>> open_page.name
'open'
"""

import webbrowser
from urllib.parse import quote, urlsplit

import click

from clickclock.cli.calling import headers
from clickclock.cli.place import ca_file_of, token_of
from clickclock.foundation.errors import ClickclockError

PAGE_SAFE = "/?&=%:,#-._~"
"""What stays as it is in a page's address."""


@click.command("open")
@click.argument("page", default="/")
@click.option("--print", "only_print", is_flag=True, help="Print the address and open no browser.")
@click.pass_context
def open_page(ctx: click.Context, page: str, *, only_print: bool) -> None:
    """Open the dashboard in a browser, signed in as you are here.

    PAGE is the path of a page, such as /runs?state=failed. Where there is no browser, the address is printed. Where the
    service wants a key, the address is a link that signs one browser in, within a minute.
    """
    url = ctx.obj.rstrip("/")
    if urlsplit(page).netloc:
        raise click.UsageError(f"{page!r} is no path of a page; give one such as /runs.")
    place = f"/{quote(page.lstrip('/'), safe=PAGE_SAFE)}"
    link = _link(ctx, url)
    address = f"{url}{place}" if link is None else f"{url}/sign-in?to={quote(place, safe='')}#{link}"
    click.echo(address)
    if link is not None:
        click.echo("It signs one browser in, once, within a minute.", err=True)
    if not only_print and not webbrowser.open(address):
        click.echo("There is no browser here; open the address on another machine.", err=True)


def _link(ctx: click.Context, url: str) -> str | None:
    """The secret of a link, for who proves himself by a token; None if the page shows all it can without one."""
    from clickclock.client import Client  # noqa: PLC0415 (loaded when it is used)

    try:
        with Client(url, retries=0, headers=headers(ctx), token=token_of(ctx), ca_file=ca_file_of(ctx)) as client:
            if client.whoami()["whoami"]["proof"] != "token":
                return None
            return str(client.sign_in_link()["secret"])
    except ClickclockError:  # the page itself says what is wrong
        return None
