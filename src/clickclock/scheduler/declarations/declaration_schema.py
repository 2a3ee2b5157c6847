"""The JSON Schema of declarations: by it, editors complete and check the files.

Never checks anything itself: the service does, with the models from which the schema is made. Invariant: every field
has its description; what only the service sets is not in it.

>>> sorted(declaration_schema()["properties"])
['application', 'applications', 'calendars', 'commandPrefixImageMappings', 'groups', 'jobs', 'schedules']
"""

from typing import Any

from clickclock.scheduler.declarations.declaration import SET_BY_SERVICE, Declaration

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def declaration_schema() -> dict[str, Any]:
    """The schema of one document."""
    schema = Declaration.model_json_schema()
    for part in (schema, *schema["$defs"].values()):
        properties = part.get("properties", {})
        for name in SET_BY_SERVICE & properties.keys():
            del properties[name]
        for each in properties.values():
            each.pop("title", None)
            if not each.get("default", True) and each["default"] not in (False, 0):
                del each["default"]
        part.pop("title", None)
    return {"$schema": DIALECT, "title": "Jobs as files: clickclock apply", **schema}
