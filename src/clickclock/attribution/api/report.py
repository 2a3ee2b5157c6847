"""`GET /attribution/report`: what clicks brought, by whatever they have, out of one result version.

Parse, call, render. Never counts anything. Invariant: JSON, CSV and Parquet say the same.

>>> read({"by": ["client"], "format": ["csv"]}).form.value
'csv'
"""

import io
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from clickclock.attribution.reporting.figures import Form
from clickclock.attribution.reporting.question import read
from clickclock.attribution.reporting.report import Asked

if TYPE_CHECKING:
    from clickclock.attribution.api.query_context import Desk, Reply

__all__ = ["answer", "read"]

_MEDIA_TYPES: Final[Mapping[Form, str]] = {Form.CSV: "text/csv", Form.PARQUET: "application/vnd.apache.parquet"}


def answer(desk: "Desk", asked: Asked) -> "Reply":
    """The report."""
    # Only the process that answers gets here; the service has no use for what these load.
    from clickclock.attribution.agents.reporter import Reporter, write  # noqa: PLC0415 (see the line above)
    from clickclock.attribution.api.query_context import Reply, reply  # noqa: PLC0415 (see the line above)

    report = Reporter(desk.lake, desk.engine).report(asked)
    if asked.form is Form.JSON:
        return reply({"status": "success", "report": report.wire()})
    sink = io.BytesIO()
    write(report, sink)
    name = f"report-{report.version}.{asked.form}"
    return Reply(sink.getvalue(), _MEDIA_TYPES[asked.form], {"content-disposition": f'attachment; filename="{name}"'})
