r"""An answer in the form that somebody asks for with `-o`: for a program, a spreadsheet or a loop of a shell.

Never leaves anything out of `json` and `yaml`. Invariant: `csv` and `name` are of the rows, or of the one thing that an
answer is about; a value that is no single one is JSON within its cell.

>>> written({"status": "success", "jobs": [{"application": "a", "jobName": "j"}]}, "name")
'a/j\n'
"""

import csv
import io
import json
from typing import Any, Final

_NAMES: Final = (
    *("notificationId", "silenceId", "alarmId", "auditId", "sessionId", "triggerId", "backfillId", "scheduleId"),
    *("calendarName", "groupName", "prefix", "application", "id", "name"),
)
"""What a row is called by, beside a job's two names; the first that it has. Its own id stands before that of anything
it belongs to, as a backfill belongs to a schedule."""
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def written(payload: dict[str, Any], form: str) -> str:
    """The answer, as text that ends with a line break."""
    match form:
        case "json":
            return json.dumps(payload, indent=2, ensure_ascii=False) + "\n"
        case "yaml":
            import yaml  # noqa: PLC0415 (only this form needs it)

            return str(yaml.safe_dump(payload, allow_unicode=True, sort_keys=False))
        case "name":
            return "".join(f"{_name(row)}\n" for row in _rows(payload))
        case _:
            return _csv(_rows(payload))


def _rows(payload: dict[str, Any]) -> list[dict[str, Any]]:
    told = [value for name, value in payload.items() if name != "status"]
    for value in told:
        if isinstance(value, list):
            return [row for row in value if isinstance(row, dict)]
    return [value for value in told if isinstance(value, dict)][:1]


def _name(row: dict[str, Any]) -> str:
    ids = [row[name] for name in _NAMES if isinstance(row.get(name), str)]
    is_job = "jobName" in row and not any(name.endswith("Id") and row.get(name) for name in _NAMES if name in row)
    return f"{row['application']}/{row['jobName']}" if is_job else str(ids[0] if ids else "")


def _csv(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    # A spreadsheet would compute what begins so; a number stays a number.
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
