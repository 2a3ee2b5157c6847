"""The settings of the service's edge: its certificate, whose certificates it knows, and where others see it.

Never opens a file: `app/certificates.py` does. Invariant: a certificate and its key are given together.

>>> EdgeSettings().scheme
'http'
"""

from pathlib import Path
from urllib.parse import urlsplit

from pydantic import Field, ValidationInfo, field_validator

from clickclock.foundation.permission import Role
from clickclock.foundation.principal import EVERY, Grant
from clickclock.foundation.record import Settings


class CertificateClient(Settings):
    """Somebody who proves himself by a certificate, a `[[tls_clients]]` table of the file."""

    name: str = Field(min_length=1, max_length=256, description="The certificate's common name, or one of its others.")
    role: Role = Field(description="What it allows.")
    applications: tuple[str, ...] = Field((EVERY,), description="In these applications; `*` is all.")
    clients: tuple[str, ...] = Field((EVERY,), description="Of these client accounts; `*` is all.")

    def grant(self) -> Grant:
        """As it is compared with what is asked for."""
        return Grant(self.role, frozenset(self.applications), frozenset(self.clients))


class EdgeSettings(Settings):
    """What `Config` has of the edge."""

    public_url: str | None = Field(
        None, description="Where people see the service, if a proxy is in front of it: `https://jobs.example.com`."
    )
    tls_certificate: Path | None = Field(
        None, description="File with the certificate of both ports and its chain (PEM); without it, they speak HTTP."
    )
    tls_key: Path | None = Field(
        None, validate_default=True, description="File with its key (PEM, without a password)."
    )
    tls_client_ca: Path | None = Field(
        None, validate_default=True, description="File with the CAs whose certificates prove who asks, on `port`."
    )
    tls_clients: tuple[CertificateClient, ...] = Field(
        (), validate_default=True, description="Who is known by a certificate, and what that allows."
    )

    @field_validator("tls_key")
    @classmethod
    def _refuse_half_a_pair(cls, key: Path | None, info: ValidationInfo) -> Path | None:
        if key is None and info.data.get("tls_certificate") is not None:
            raise ValueError("tls_certificate is given without it; give the key's file, too")
        if key is not None and info.data.get("tls_certificate") is None:
            raise ValueError("it is given without tls_certificate; give the certificate's file, too")
        return key

    @field_validator("tls_client_ca")
    @classmethod
    def _refuse_names_without_tls(cls, ca: Path | None, info: ValidationInfo) -> Path | None:
        if ca is not None and info.data.get("tls_certificate") is None:
            raise ValueError("without tls_certificate nobody sends a certificate; give that, too")
        return ca

    @field_validator("tls_clients")
    @classmethod
    def _refuse_who_cannot_come(
        cls, clients: tuple[CertificateClient, ...], info: ValidationInfo
    ) -> tuple[CertificateClient, ...]:
        if clients and info.data.get("tls_client_ca") is None:
            raise ValueError("without tls_client_ca no certificate is believed; give that, too")
        return clients

    @field_validator("public_url")
    @classmethod
    def _refuse_what_is_no_origin(cls, url: str | None) -> str | None:
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            is_origin = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is none, or half an IPv6 address
            is_origin = False
        if not is_origin or "@" in url or url.rstrip("/") != f"{url.partition('://')[0]}://{urlsplit(url).netloc}":
            raise ValueError("give https://HOST or https://HOST:PORT and nothing more: the dashboard is at its root")
        return url.rstrip("/")

    @property
    def scheme(self) -> str:
        """What both ports speak."""
        return "http" if self.tls_certificate is None else "https"

    def certificate_grants(self) -> dict[str, tuple[Grant, ...]]:
        """The grants of each name that a certificate may have."""
        names = {each.name for each in self.tls_clients}
        return {name: tuple(each.grant() for each in self.tls_clients if each.name == name) for name in names}
