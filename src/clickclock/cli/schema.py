"""`clickclock schema`: the JSON Schema of the files that apply takes, for editors.

Never asks the service: the schema is that of this release. Invariant: the same as in the reference.

>>> schema.name
'schema'
"""

import click

from clickclock.cli.calling import print_json


@click.command()
def schema() -> None:
    """Print the JSON Schema of the files that `apply` takes."""
    from clickclock.scheduler.declarations.declaration_schema import declaration_schema  # noqa: PLC0415 (loaded when it is used)

    print_json(declaration_schema())
