"""`clickclock completion`: the script that makes Tab work.

Never touches a start-up file: it prints, the reader decides.

>>> completion.name
'completion'
"""

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script for tab completion in a shell."""
    script = get_completion_class(shell)
    assert script is not None
    click.echo(script(ctx.find_root().command, {}, "clickclock", "_CLICKCLOCK_COMPLETE").source())
