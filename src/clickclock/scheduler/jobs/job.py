"""A job: what to run, identified by (`application`, `jobName`).

Never decides when it runs (`schedule.py`) and never reads a clock.
Invariants: a valid job has a command that can be split (`command.py`); four fields make a job, three of them required.

>>> Job(application="shop", job_name="export", command="python export.py").priority
50
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from clickclock.foundation.errors import Fault, Invalid
from clickclock.foundation.record import Instant, Record
from clickclock.scheduler.jobs import command as commands
from clickclock.scheduler.jobs.dependency import Condition, IfSkipped
from clickclock.scheduler.jobs.filled_text import text_faults
from clickclock.scheduler.jobs.notification import Notifications
from clickclock.scheduler.jobs.retry import RetryRule
from clickclock.scheduler.jobs.run_as import USER_PATTERN
from clickclock.scheduler.jobs.secret import VARIABLE_PATTERN, SecretRef
from clickclock.scheduler.jobs.trigger import When

NAME_PATTERN = r"^[A-Za-z0-9](?:[A-Za-z0-9._/:@ -]{0,126}[A-Za-z0-9._-])?$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN, max_length=128)]
"""Up to 128 letters, digits and `._/:@ -`, beginning with a letter or digit: safe in a URL, a label and a log."""

Text = Annotated[str, StringConstraints(max_length=4096)]
AttemptRole = Literal["viewer", "operator", "editor"]
"""A role that an attempt may have in its job's application; the others reach further."""
PullPolicy = Literal["always", "ifNotPresent", "never"]
"""When an image is pulled from its registry."""
MEMORY_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}
FOLDER_PATTERN = r"^/"
MEMORY_PATTERN = r"^\d{1,15}(?:\.\d{1,3})?(?:K|M|G|Ki|Mi|Gi)?$"
MEMORY_MIN = "16Mi"
"""For processes of one machine: what starts one takes some 11 MB itself."""


def memory_bytes(quantity: str) -> int:
    """Bytes in a quantity as Kubernetes writes it, and no more than systems can count: that is no limit to anybody.

    >>> memory_bytes("64Mi")
    67108864
    """
    unit = quantity.lstrip("0123456789.")
    return min(int(float(quantity.removesuffix(unit)) * MEMORY_UNITS[unit]), 2**63 - 1)


class Resources(Record):
    """What one attempt may use."""

    cpu: float | None = Field(
        None,
        gt=0,
        le=1024,
        description="Processor cores; for processes of one machine rounded up to whole ones.",
        examples=[1],
    )
    memory: str | None = Field(
        None,
        pattern=MEMORY_PATTERN,
        description="Memory, as Kubernetes writes it: `64Mi`, `1G`; for processes of one machine at least `16Mi`.",
        examples=["256Mi"],
    )

    @property
    def memory_bytes(self) -> int | None:
        return None if self.memory is None else memory_bytes(self.memory)


class RetryBackoff(Record):
    """How long to wait before the next attempt: exponentially longer, and spread by jitter."""

    initial_seconds: float = Field(1.0, ge=0, le=86400, description="Longest wait after the first failure.")
    multiplier: float = Field(2.0, ge=1, le=100, description="How much longer each further wait may be.")
    max_seconds: float = Field(300.0, ge=0, le=604800, description="No wait is longer than this.")
    jitter: Literal["full", "none"] = Field(
        "full",
        description="`full`: each wait is drawn anew, from nothing to its longest, so that many that failed together "
        "do not come back together. `none`: each wait is its longest, and so the least.",
        examples=["full"],
    )


_WHEN = "How it has to end: `succeeded`, `failed` (for good), `finished` (either way), or `anySucceeded` (one of those \
entries is enough)."
_IF_SKIPPED = (
    "What the condition comes to if it was skipped (disabled, paused, overlap …): `unmet`, `met`, or `ignored` \
as if there were no such entry. `met` for `finished` and else `unmet`, if not given."
)


class Upstream(Record):
    """A job that another one depends on, and how it has to end."""

    application: Name = Field(description="Its application.", examples=["shop"])
    job_name: Name = Field(description="Its name.", examples=["extract"])
    when: When = Field(When.SUCCEEDED, description=_WHEN, examples=["succeeded"])
    if_skipped: IfSkipped | None = Field(None, description=_IF_SKIPPED, examples=["unmet"])

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: GetJsonSchemaHandler, /) -> Any:
        """That of its fields, however it is written."""
        return handler({name: value for name, value in schema.items() if name != "serialization"})

    @model_serializer(mode="wrap")
    def _plainly(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Default values are left out: earlier releases know no conditions."""
        unsaid = {"when": When.SUCCEEDED, "ifSkipped": None, "if_skipped": None}
        written: dict[str, Any] = write(self)
        return {name: value for name, value in written.items() if name not in unsaid or value != unsaid[name]}

    @property
    def key(self) -> tuple[str, str]:
        return self.application, self.job_name

    @property
    def condition(self) -> Condition:
        return Condition(self.when, self.if_skipped)


def _read_with(faults: Sequence[str], value: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """`value` as `read` makes it; if that fails, too, the error has its faults and these."""
    found: list[InitErrorDetails] = []
    try:
        made = read(value)
    except ValidationError as error:
        found = [
            {"type": each["type"], "loc": each["loc"], "input": each["input"], "ctx": each.get("ctx", {})}
            for each in error.errors(include_url=False)
        ]
    found += [{"type": PydanticCustomError("value_error", "{text}", {"text": each}), "input": value} for each in faults]
    if found:
        raise ValidationError.from_exception_data("dependsOn", found)
    return made


UPSTREAMS_MAX = 100
_A_NAME: dict[str, Any] = {"type": "string", "pattern": NAME_PATTERN, "maxLength": 128}
_UPSTREAMS_AS_GIVEN: dict[str, Any] = {
    "type": "array",
    "maxItems": UPSTREAMS_MAX,
    "items": {
        "anyOf": [
            _A_NAME,
            {
                "type": "object",
                "properties": {
                    "application": {**_A_NAME, "description": "Its application.", "examples": ["shop"]},
                    "jobName": {**_A_NAME, "description": "Its name.", "examples": ["extract"]},
                    "when": {"enum": list(When), "default": "succeeded", "description": _WHEN, "examples": ["failed"]},
                    "ifSkipped": {"enum": [*IfSkipped, None], "description": _IF_SKIPPED, "examples": ["met"]},
                },
                "required": ["jobName"],
                "additionalProperties": False,
            },
        ]
    },
}


class Job(Record):
    """What to run. The interface's four fields are enough."""

    application: Name = Field(description="Name of the owning application.", examples=["shop"])
    job_name: Name = Field(description="Name of the job, unique in its application.", examples=["nightly-export"])
    command: str = Field(
        description="Command to run, split into words as a POSIX shell would, and run without a shell.",
        examples=["python export.py --day {{ nominalTime }}"],
    )
    preemption: bool = Field(False, description="Whether running attempts may be preempted to make room.")
    description: Text | None = Field(None, description="What the job is for.", examples=["Exports the day's orders."])
    owner: Text | None = Field(None, description="Who answers for it.", examples=["orders-team@example.com"])
    labels: dict[Name, Annotated[str, StringConstraints(max_length=256)]] = Field(
        default_factory=dict, max_length=64, description="Free labels.", examples=[{"tier": "gold"}]
    )
    group_name: Name | None = Field(None, description="The group whose policy it shares.", examples=["exports"])
    enabled: bool = Field(True, description="A disabled job runs neither by schedule nor by call.")
    shell: bool = Field(False, description="Run the command with `/bin/sh -c`.")
    image: Text | None = Field(
        None, description="Container image; wins over the prefix mapping.", examples=["python:3.13"]
    )
    pull_policy: PullPolicy | None = Field(
        None, description="When its image is pulled; as the cluster says if not given.", examples=["ifNotPresent"]
    )
    cluster: Name | None = Field(None, description="The cluster that runs it; the first one if not given.")
    node: Name | None = Field(
        None,
        description="The replica that alone may run it, by its `node` in `GET cluster`; any if not given.",
        examples=["web-1-5f0c6c1d9a11"],
    )
    environment: dict[Annotated[str, StringConstraints(pattern=VARIABLE_PATTERN)], str] = Field(
        default_factory=dict, max_length=256, description="Environment variables.", examples=[{"STAGE": "production"}]
    )
    secret_refs: Annotated[list[SecretRef], Field(max_length=256)] = Field(
        default_factory=list,
        description="Environment variables whose values are read at the start of each attempt, and kept nowhere.",
        examples=[[{"name": "DB_PASSWORD", "file": "db_password"}]],
    )
    token: AttemptRole | None = Field(
        None,
        description="Each attempt gets a token of its own in `CLICKCLOCK_TOKEN`, with this role in the job's "
        "application, and in `CLICKCLOCK_URL` where to send it. It ends with the attempt. Nobody can give a job a role "
        "that he has not got.",
        examples=["operator"],
    )
    user: Annotated[str, StringConstraints(pattern=USER_PATTERN)] | None = Field(
        None,
        description="The user that it runs as, by name or number, and perhaps `:group`; the service's own, or the "
        "image's, if not given. The setting `job_users` says who is allowed.",
        examples=["reports"],
    )
    working_directory: Text | None = Field(
        None, pattern=FOLDER_PATTERN, description="Absolute folder to run in; `/`, or the image's own, if not given."
    )
    parameters: dict[str, str | None] = Field(
        default_factory=dict,
        max_length=64,
        description="Declared parameters with their defaults; `null` means that each trigger must give a value.",
        examples=[{"day": "today"}],
    )
    resources: Resources = Field(default_factory=Resources, description="Limits for each attempt.")
    timeout_seconds: float | None = Field(
        None, gt=0, le=31_536_000, description="An attempt that runs longer is stopped; no limit if not given."
    )
    grace_period_seconds: float = Field(10.0, ge=0, le=3600, description="Time between SIGTERM and SIGKILL.")
    keep_detached: bool = Field(
        False,
        description="Whether processes that made a session of their own (`setsid`, a daemon) outlive the attempt; if "
        "not, everything that it started ends with it. In containers everything always does.",
    )
    max_retries: int = Field(0, ge=0, le=100, description="Further attempts after a failure.")
    retry_backoff: RetryBackoff = Field(default_factory=RetryBackoff, description="Waits between attempts.")
    retry_on_exit_codes: Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(max_length=256)] | None = Field(
        None,
        description="Of failures with an exit code only these are tried again; those without one (a signal ended it, "
        "it was lost) are in any case. Every failure if not given.",
        examples=[[75]],
    )
    success_exit_codes: list[Annotated[int, Field(ge=0, le=255)]] = Field(
        default_factory=lambda: [0], min_length=1, max_length=256, description="Exit codes that count as success."
    )
    priority: int = Field(50, ge=0, le=100, description="Higher starts first when there is not room for all.")
    max_concurrent_triggers: int | None = Field(
        None, ge=1, le=100_000, description="At most this many run at once; no limit if not given."
    )
    expected_within_seconds: float | None = Field(
        None,
        ge=1,
        le=31_536_000,
        description="If it has not succeeded for so long, that is an alarm; none if not given.",
    )
    notifications: Notifications = Field(default_factory=Notifications, description="Who is notified of its alarms.")
    depends_on: Annotated[list[Upstream], WithJsonSchema(_UPSTREAMS_AS_GIVEN, mode="validation")] = Field(
        default_factory=list,
        max_length=UPSTREAMS_MAX,
        description="Jobs that it runs after, each with `application`, `jobName`, `when` and `ifSkipped`, or just the "
        "name where the application is the same and it has to succeed.",
        examples=[[{"application": "shop", "jobName": "extract"}]],
    )
    retention_days: float = Field(30, gt=0, le=3650, description="How long finished triggers and logs are kept.")

    managed_by: Name | None = Field(
        None, description="The set of files that it is applied from; set by `PUT declaration`.", examples=["shop-repo"]
    )

    @field_validator("depends_on", mode="wrap")
    @classmethod
    def _each_other_job_once(cls, value: Any, read: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Where the application is left out, it is the job's own. A bad entry hides no pair of entries of one job."""
        if not isinstance(value, list):
            return read(value)
        # An unreadable application is reported already; any other stands in for it.
        application = info.data.get("application", "unreadable")
        named = [{"jobName": each} if isinstance(each, str) else each for each in value]
        named = [{"application": application} | each if isinstance(each, dict) else each for each in named]
        keys = [f"{each.get('application')}/{each.get('jobName')}" for each in named if isinstance(each, dict)]
        faults = []
        if f"{application}/{info.data.get('job_name')}" in keys:
            faults.append("a job cannot depend on itself; take it out")
        if twice := sorted({each for each in keys if keys.count(each) > 1}):
            faults.append(f"give each job once; given twice: {', '.join(twice)}")
        return _read_with(faults, named, read)

    @field_validator("parameters")
    @classmethod
    def _names_of_parameters(cls, value: dict[str, str | None]) -> dict[str, str | None]:
        faults = commands.parameter_name_faults(value)
        if faults:
            raise ValueError(" ".join(faults))
        return value

    @field_validator("secret_refs")
    @classmethod
    def _each_variable_once(cls, value: list[SecretRef], info: ValidationInfo) -> list[SecretRef]:
        names = [ref.name for ref in value]
        twice = sorted(
            {name for name in names if names.count(name) > 1} | (set(names) & set(info.data.get("environment", ())))
        )
        if twice:
            raise ValueError(f"give each variable once, here or in environment; given twice: {', '.join(twice)}")
        return value

    @model_validator(mode="after")
    def _command_can_be_split(self) -> "Job":
        try:
            commands.parse(self.command, shell=self.shell, parameter_names=frozenset(self.parameters))
        except Invalid as invalid:
            raise ValueError(" ".join(fault.message for fault in invalid.faults)) from invalid
        return self

    @property
    def key(self) -> tuple[str, str]:
        return self.application, self.job_name

    @property
    def retry_rule(self) -> RetryRule:
        """The arithmetic of its retries."""
        codes = self.retry_on_exit_codes
        return RetryRule(
            self.retry_backoff.initial_seconds,
            self.retry_backoff.multiplier,
            self.retry_backoff.max_seconds,
            frozenset(self.success_exit_codes),
            None if codes is None else frozenset(codes),
            self.retry_backoff.jitter == "full",
        )

    def template_faults(self) -> list[Fault]:
        """Templates in the environment and the folder that do not exist. Jobs of earlier releases may have them."""
        texts = {f"environment.{name}": text for name, text in self.environment.items()}
        texts["workingDirectory"] = self.working_directory or ""
        return [fault for field, text in texts.items() for fault in text_faults(field, text, self.parameters)]

    def leaving_unsaid(self, old: "Job") -> "Job":
        """This job, where what `old` left unsaid and still has its plain default stays unsaid.

        So a job that was read and is written back with one field changed goes on following its group's defaults.
        """
        said = {
            name
            for name in self.model_fields_set
            if name in old.model_fields_set
            or getattr(self, name) != type(self).model_fields[name].get_default(call_default_factory=True)
        }
        return type(self).model_construct(said, **dict(self))

    def fill_parameters(self, given: dict[str, str]) -> dict[str, str]:
        """Declared defaults with the given values over them; raises `Invalid` naming every fault."""
        faults = commands.parameter_faults(self.parameters, given)
        if faults:
            raise Invalid(f"The parameters do not fit {self.application}/{self.job_name}.", faults)
        return {name: value for name, value in {**self.parameters, **given}.items() if value is not None}


class StoredJob(Job):
    """A job as the service keeps it."""

    version: int = Field(description="Grows with every change; the ETag.", examples=[1])
    created_at: Instant = Field(description="When it was created.")
    updated_at: Instant = Field(description="When it last changed.")
    updated_by: str | None = Field(None, description="Who changed it last; null: the service.", examples=["ada"])

    @property
    def definition(self) -> dict[str, Any]:
        """The user's own part, as it goes back into a request."""
        return self.model_dump(
            mode="json", by_alias=True, exclude={"version", "created_at", "updated_at", "updated_by"}
        )
