"""`clickclock audit`: who did what, a copy of it to keep elsewhere, and the proof that nobody changed it.

Never changes a record. Invariants: `verify` computes every hash itself; an export can be verified without the service.

>>> sorted(audit.commands)
['export', 'list', 'show', 'verify']
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clickclock.cli.calling import calls, service
from clickclock.cli.clicks_export import sink
from clickclock.cli.completing import complete_record, one_of
from clickclock.cli.fields import Instant, names, of_jobs, page
from clickclock.cli.lazy import Commands
from clickclock.cli.rendering import counted, field_names, plain, record, sections, when
from clickclock.cli.settings import FILE
from clickclock.cli.tables import table
from clickclock.foundation.hash_chain import Verdict, verify

if TYPE_CHECKING:
    from clickclock.client import Client, Payload


RECORDS = table(
    "records",
    ("at", "at", when),
    ("who", "principal"),
    ("from", "address"),
    ("operation", "operation"),
    ("what", "resource"),
    ("which", "resourceId"),
    ("outcome", "outcome"),
    ("times", "count"),
    ("changed", "changes", field_names),
    ("id", "auditId"),
)


@click.group(cls=Commands)
def audit() -> None:
    """The audit trail: who changed what, and when."""


@audit.command("list")
@of_jobs()
@click.option("--principal", help="Only what this person or token did.")
@click.option("--permission", help="Only what needs this permission, such as job.write.")
@click.option("--resource", help="Only records about things of this kind: job, schedule, trigger, ….")
@click.option("--id", "resource_id", help="Only records about the thing of this id or name.")
@click.option("--outcome", shell_complete=one_of("done", "refused"), help="Only what ended so: done or refused.")
@click.option("--from", "--since", "from_", type=Instant(looks_back=True), help="Only records of this time or later.")
@click.option("--to", type=Instant(looks_back=True), help="Only records before this time.")
@page
@calls(RECORDS)
def list_records(client: "Client", **filters: Any) -> "Payload":
    """List records, newest first: all, an application's, or a job's."""
    return client.list_audit(**names(filters))


def _sides(payload: "Payload") -> None:
    changes = payload["records"][0]["changes"] if payload["records"] else None
    rows = [
        {"field": name, **{side: plain(sides.get(side)) for side in ("before", "after")}}
        for name, sides in (changes or {}).items()
    ]
    table("rows", ("field", "field"), ("before", "before"), ("after", "after"), title="Changes")({"rows": rows})


@audit.command()
@click.argument("audit_id", shell_complete=complete_record)
@calls(sections(record("records.0"), _sides))
def show(client: "Client", audit_id: str) -> "Payload":
    """Show one record, with what changed."""
    return client.list_audit(auditId=audit_id)


@audit.command()
@click.option("--output", type=FILE, help="File to write; standard output if not given.")
@click.pass_obj
def export(url: str, output: Path | None) -> None:
    """Write the whole trail as NDJSON, to be kept elsewhere: chain after chain, each from its end."""
    count = 0
    with service(url) as client, sink(output) as file:
        for line in client.audit_trail():
            file.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
            count += "auditId" in line
    if output is not None:
        click.echo(f"{counted(count, 'record')} written to {output}.", err=True)


@audit.command("verify")
@click.argument("exported", type=FILE, required=False)
@click.option("--against", type=FILE, help="An earlier export: what ends its chains has to be there still.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.pass_obj
def verify_trail(url: str, exported: Path | None, against: Path | None, as_json: bool) -> None:
    """Recompute the hashes of the service's trail, or of an export, and name the first break of each chain."""
    known = {}
    if against is not None:
        earlier = verify(_lines(against))
        known = {each.chain: each.newest for each in earlier if each.newest is not None}
    if exported is not None:
        verdicts = list(verify(_lines(exported), known))
    else:
        with service(url) as client:
            verdicts = list(verify(client.audit_trail(), known))
    if as_json:
        click.echo(json.dumps({"chains": [_told(each) for each in verdicts]}, indent=2))
    for each in () if as_json else verdicts:
        end = f", its last at position {each.newest[0]}" if each.newest else ""
        click.echo(f"{each.chain}: {each.fault or counted(each.records, 'record') + end + ', whole'}.")
    if any(each.fault for each in verdicts):
        raise click.ClickException("The trail is broken; compare it with the last export that is whole.")


def _told(verdict: Verdict) -> dict[str, Any]:
    position, hash_ = verdict.newest or (None, None)
    return {
        "chain": verdict.chain,
        "records": verdict.records,
        "removedThrough": verdict.removed_through,
        "position": position,
        "hash": hash_,
        "fault": verdict.fault,
    }


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                read = json.loads(line)
                if not isinstance(read, dict) or "chain" not in read:
                    raise click.ClickException(f"{path}, line {number}, is no line of an export of the audit trail.")
                yield read
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} cannot be read: {error}.") from error
