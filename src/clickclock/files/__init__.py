"""Jobs as files: YAML in and out, crontabs in, and what a change looks like.

Never speaks HTTP and never judges a field: the service does, and `Sources.located` says where in a file its faults are.
Invariants: a file is read once; what is written here is read back as it was; every fault has its file, line and column.

>>> documents('jobs: [{jobName: a, command: "true"}]', "jobs.yaml")
[{'jobs': [{'jobName': 'a', 'command': 'true'}]}]
"""

from clickclock.files.crontab import Crontab, read_crontab
from clickclock.files.difference import difference
from clickclock.files.documents import Unreadable, documents, place_in, written
from clickclock.files.sources import STANDARD_INPUT, Sources, text_of

__all__ = [
    "STANDARD_INPUT",
    "Crontab",
    "Sources",
    "Unreadable",
    "difference",
    "documents",
    "place_in",
    "read_crontab",
    "text_of",
    "written",
]
