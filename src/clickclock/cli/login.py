"""`clickclock login`: a token for this command line, from a person who is signed in to the dashboard.

Never sees what the person signs in with. Invariants: the token is in this user's contexts and nowhere else; who lets it
in sees the code that is shown here.

>>> login.name
'login'
"""

import getpass
import socket
import time
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import click

from clickclock.cli.calling import refusal
from clickclock.cli.context import kept
from clickclock.cli.program import address
from clickclock.foundation.errors import ClickclockError


@click.command()
@click.argument("url", callback=address)
@click.option("--name", help="What the context is called; the host's name if not given.")
@click.option("--ca-file", type=click.Path(dir_okay=False, path_type=Path), help="Certificates to believe, too.")
@click.option("--no-browser", is_flag=True, help="Open no browser; print the address.")
def login(url: str, name: str | None, ca_file: Path | None, *, no_browser: bool) -> None:
    """Log in to the service at URL: a person lets this command line in, in the dashboard."""
    from clickclock.client import Client  # noqa: PLC0415 (loaded when it is used)
    from clickclock.foundation.contexts import Context, checked_name  # noqa: PLC0415 (as above)

    url = url.rstrip("/")
    try:
        name = checked_name(name or urlsplit(url).hostname or "")
        with Client(url, token="", ca_file=ca_file) as client:
            begun = client.begin_login(f"{getpass.getuser()}@{socket.gethostname()}")
            page = f"{url}/login?code={begun['code']}"
            click.echo(f"The code is {begun['code']}. Let it in at {page}", err=True)
            if not no_browser:
                webbrowser.open(page)
            while (secret := (got := client.end_login(begun["loginKey"]))["secret"]) is None:
                time.sleep(begun["pollAfterS"])
    except ClickclockError as error:
        raise refusal(error) from error
    trusted = None if ca_file is None else str(ca_file.absolute())
    with kept() as (contexts, file):
        contexts.having(name, Context(url, secret, None, trusted)).write(file)
    token = got["token"]
    click.echo(f"Logged in until {token['expiresAt']}. The context {name} is in use; `clickclock whoami` shows more.")
