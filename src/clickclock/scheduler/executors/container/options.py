"""What a container cluster's table in the configuration may say.

Never opens anything but the file of credentials. Invariant: what is valid here needs no second look later.

>>> ContainerOptions.model_validate({"engine": "unix:///run/podman/podman.sock"}).capacity
100
"""

import base64
import binascii
import json
import re
import ssl
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, StringConstraints, ValidationInfo, field_validator

from clickclock.foundation.reach import is_loopback
from clickclock.foundation.record import Settings
from clickclock.foundation.redaction import redacted
from clickclock.scheduler.jobs.job import PullPolicy

VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")]
Capability = Annotated[str, StringConstraints(pattern=r"^(ALL|[A-Z][A-Z_]{2,40})$")]
_HUB = "https://index.docker.io/v1/"
"""What the hub's credentials are filed under."""


class ContainerOptions(Settings):
    """One `[clusters.NAME]` table with `executor = "container"`."""

    engine: str = Field("unix:///var/run/docker.sock", description="`unix:///SOCKET` or `tcp://HOST:PORT`.")
    shared: bool | None = Field(
        None,
        description="Whether other replicas reach the same engine under the same cluster's name, and go on with its "
        "containers when this one is gone; if not given, an engine on TCP that is not this machine's own is.",
    )
    tls_ca: Path | None = Field(None, description="Certificates by which an engine on TCP is known; then TLS is used.")
    tls_certificate: Path | None = Field(None, description="Our certificate for the engine, with `tls_key`.")
    tls_key: Path | None = Field(None, description="The key of `tls_certificate`.")
    capacity: int = Field(100, ge=1, le=100_000, description="Containers that run at once.")
    pull_policy: PullPolicy = Field("ifNotPresent", description="When images are pulled, if the job does not say.")
    registry_auth_file: Path | None = Field(None, description="Credentials of registries, as `docker login` writes it.")
    network: str | None = Field(None, min_length=1, description="Network: `host`, `none`, or the name of one.")
    user: str | None = Field(None, min_length=1, description="User, or `user:group`, that commands run as.")
    restricted: bool = Field(
        True,
        description="Whether containers lose all capabilities and gain none; `false` is the engine's own way.",
    )
    capabilities: tuple[Capability, ...] = Field((), description="Capabilities that they keep all the same.")
    init: bool = Field(True, description="Whether a small init passes signals on and buries orphans.")
    mounts: tuple[str, ...] = Field((), description="`SOURCE:TARGET` or `SOURCE:TARGET:ro`, in every container.")
    ulimits: dict[str, str] = Field({}, description="Limits by name: `SOFT:HARD`.")
    environment: dict[VariableName, str] = Field({}, description="Variables that every attempt gets.")
    labels: dict[str, str] = Field({}, description="Further labels of every container.")

    @field_validator("engine")
    @classmethod
    def _refuse_other_addresses(cls, engine: str) -> str:
        parts = urlsplit(engine)
        is_socket = parts.scheme == "unix" and not parts.netloc and parts.path.startswith("/")
        if not is_socket and not (parts.scheme == "tcp" and parts.hostname and not parts.path.strip("/")):
            raise ValueError(f"{redacted(engine)} is no engine; give unix:///run/podman/podman.sock or tcp://HOST:2375")
        return engine

    @field_validator("tls_key")
    @classmethod
    def _refuse_half_a_certificate(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if (key is None) != (info.data.get("tls_certificate") is None):
            raise ValueError("give tls_certificate and tls_key together")
        return key

    @field_validator("mounts")
    @classmethod
    def _refuse_what_is_no_mount(cls, mounts: tuple[str, ...]) -> tuple[str, ...]:
        for mount in mounts:
            if not re.fullmatch(r"[^:\0]+:/[^:\0]*(:[a-zA-Z,]+)?", mount):
                raise ValueError(f"{mount} is no mount; give SOURCE:/TARGET or SOURCE:/TARGET:ro")
        return mounts

    @field_validator("ulimits")
    @classmethod
    def _refuse_what_is_no_limit(cls, ulimits: dict[str, str]) -> dict[str, str]:
        for name, limit in ulimits.items():
            if not re.fullmatch(r"-?\d{1,18}(:-?\d{1,18})?", limit):
                raise ValueError(f"{name} = {limit} is no limit; give SOFT:HARD, such as 1024:4096")
        return ulimits

    @property
    def base_url(self) -> str:
        """Where requests go."""
        parts = urlsplit(self.engine)
        if parts.scheme == "unix":
            return "http://engine"
        return f"{'https' if self.tls_ca else 'http'}://{parts.netloc}"

    @property
    def is_shared(self) -> bool:
        """Whether other replicas reach the same engine."""
        host = urlsplit(self.engine).hostname
        return self.shared if self.shared is not None else host is not None and not is_loopback(host)

    @property
    def socket(self) -> str | None:
        """The engine's Unix socket, if it has one."""
        parts = urlsplit(self.engine)
        return parts.path if parts.scheme == "unix" else None

    def tls(self) -> ssl.SSLContext | bool:
        """How TLS is spoken, where it is. Raises `OSError`."""
        if self.tls_ca is None:
            return True
        try:
            context = ssl.create_default_context(cafile=str(self.tls_ca))
            if self.tls_certificate is not None:
                context.load_cert_chain(self.tls_certificate, self.tls_key)
        except OSError as error:
            raise OSError(f"tls_ca, tls_certificate or tls_key cannot be used: {error.strerror or error}") from None
        return context

    def registry_auth(self, image: str) -> str | None:
        """Credentials with which the engine pulls `image`, read anew each time; None without any for its registry.

        Raises `ValueError` if the file cannot be read, with a sentence that does not quote it.
        """
        if self.registry_auth_file is None:
            return None
        registry = _registry_of(image)
        try:
            entries = json.loads(self.registry_auth_file.read_bytes()).get("auths", {})
            entry = next((entries[key] for key in (registry, f"https://{registry}") if key in entries), None)
            if entry is None:
                return None
            if "auth" in entry:
                user, _, password = base64.b64decode(entry["auth"]).decode().partition(":")
            else:
                user, password = entry["username"], entry["password"]
        except OSError as error:
            raise ValueError(f"registry_auth_file cannot be read: {error.strerror}.") from error
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise ValueError("registry_auth_file is not what `docker login` writes; make it anew.") from error
        told = {"username": user, "password": password, "serveraddress": registry}
        return base64.urlsafe_b64encode(json.dumps(told).encode()).decode()


def _registry_of(image: str) -> str:
    """The registry that an image's name begins with; the hub, if with none."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else _HUB
