"""`clickclock doctor`: look at everything, and say what is wrong and what to do.

Never changes anything, and needs no service. Invariant: the exit code is 1 exactly when a check fails; what is only
worth a look leaves it at 0.

>>> doctor.name
'doctor'
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from msgspec.structs import replace

from clickclock.cli.calling import headers, print_json, refusal
from clickclock.cli.place import ca_file_of, context_in_use, token_of
from clickclock.cli.rendering import size
from clickclock.cli.settings import CONFIG, DATA_DIR, FILE, given, settings
from clickclock.foundation.errors import ConfigurationError
from clickclock.foundation.redaction import redacted

if TYPE_CHECKING:
    from clickclock.app.doctor import Check, Terms
    from clickclock.foundation.config import Config

COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
OF_DOCTOR = (CONFIG, DATA_DIR, click.option("--database-url", help="sqlite:///FILE or postgresql://USER@HOST/NAME."))


@click.command()
@settings(OF_DOCTOR)
@click.option("--service-only", is_flag=True, help="Only ask the service; check nothing on this machine.")
@click.option("--bundle", type=FILE, help="Also write a file for who helps: settings, findings, metrics, log, schema.")
@click.option("--log", type=FILE, help="The service's log, for the bundle; if not given, that of systemd.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_context
def doctor(
    ctx: click.Context,
    /,
    config: Path | None,
    service_only: bool,
    as_json: bool,
    bundle: Path | None,
    log: Path | None,
    **options: Any,
) -> None:
    """Check the installation: what is wrong, and what to do."""
    if bundle is not None and service_only:
        raise click.UsageError("A bundle is of this machine; leave out --service-only.")
    from clickclock.app import doctor as look  # noqa: PLC0415 (loaded when it is used)
    from clickclock.foundation.config import load  # noqa: PLC0415 (as above)
    from clickclock.foundation.environment import environment  # noqa: PLC0415 (as above)

    terms = look.Terms(headers(), token_of(ctx), ca_file_of(ctx))
    if service_only:
        checks = look.of_service(ctx.obj, terms)
    else:
        variables = environment()
        try:
            loaded = load(config, variables, given(options))
        except ConfigurationError as error:
            checks = [*look.unusable(error), *look.of_service(ctx.obj, terms)]
        else:
            terms = replace(terms, ca_file=terms.ca_file or loaded.tls_certificate)
            checks = look.doctor(loaded, _url(ctx, loaded), variables, terms)
            if bundle is not None:
                _bundle(bundle, loaded, checks, (_url(ctx, loaded), terms), log)
    checks = [replace(each, found=redacted(each.found), remedy=redacted(each.remedy)) for each in checks]
    is_well = not any(each.result == look.Result.FAIL for each in checks)
    if as_json:
        rows = [{"check": c.check, "result": c.result, "found": c.found, "remedy": c.remedy} for c in checks]
        print_json({"healthy": is_well, "checks": rows})
    else:
        _print(checks)
    ctx.exit(0 if is_well else 1)


def _bundle(file: Path, config: "Config", checks: "list[Check]", asked: "tuple[str, Terms]", log: Path | None) -> None:
    from clickclock.app.doctor.bundle import write  # noqa: PLC0415 (loaded when it is used)

    try:
        parts = write(file, config, checks, *asked, log)
    except ConfigurationError as error:
        raise refusal(error) from error
    told = ", ".join(f"{name} ({size(length)})" for name, length in parts.items())
    click.echo(f"{file} has {told}. It has no passwords; look through it before you give it away.", err=True)


def _url(ctx: click.Context, config: "Config") -> str:
    """As given; if it was not, where a service of this configuration is."""
    root = ctx.find_root()
    is_given = root.get_parameter_source("url") is not ParameterSource.DEFAULT or context_in_use(root) is not None
    if is_given or not config.port:
        return str(ctx.obj)
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.host, config.host)  # noqa: S104 (where to ask, not to listen)
    return f"{config.scheme}://{f'[{host}]' if ':' in host else host}:{config.port}"


def _print(checks: Sequence["Check"]) -> None:
    width = max(len(each.check) for each in checks)
    for each in checks:
        result = click.style(f"{each.result:4}", fg=COLOURS[each.result])
        click.echo(f"{result}  {each.check:{width}}  {each.found}")
        if each.remedy:
            click.echo(f"{'':4}  {'':{width}}  → {each.remedy}")
