"""`clickclock open`: the dashboard, in the browser of whoever sits here.

Never starts a service, and never asks one: the page says whether it answers. Invariant: standard output is the address
alone, so that a script can use it.

>>> open_page.name
'open'
"""

import webbrowser
from urllib.parse import quote, urlsplit

import click

PAGE_SAFE = "/?&=%:,#-._~"
"""What stays as it is in a page's address."""


@click.command("open")
@click.argument("page", default="/")
@click.option("--print", "only_print", is_flag=True, help="Print the address and open no browser.")
def open_page(page: str, *, only_print: bool) -> None:
    """Open the dashboard in a browser.

    PAGE is the path of a page, such as /runs?state=failed. Where there is no browser, the address is printed.
    """
    url = click.get_current_context().obj
    if urlsplit(page).netloc:
        raise click.UsageError(f"{page!r} is no path of a page; give one such as /runs.")
    address = f"{url.rstrip('/')}/{quote(page.lstrip('/'), safe=PAGE_SAFE)}"
    click.echo(address)
    if not only_print and not webbrowser.open(address):
        click.echo("There is no browser here; open the address on another machine.", err=True)
