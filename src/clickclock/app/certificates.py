"""The service's certificate: read at the start, and again whenever its files change.

Never decides who may do what. Invariants: a new connection gets the newest pair that fits together; a pair that cannot
be used replaces nothing, and is reported; TLS is 1.2 or newer; a certificate's dates are read from a handshake with
ourselves, which shows at the same time that key and certificate belong together.

>>> Certificates.of(Config()) is None   # doctest: +SKIP
True
"""

import asyncio
import contextlib
import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.edge_config import EdgeSettings
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.foundation.record import rfc3339
from clickclock.scheduler.insight.finding import Finding, FindingCode, finding

LOOK_EVERY_S: Final = 5.0
ENDS_SOON: Final = timedelta(days=14)
_TURNS_MAX: Final = 10
"""A handshake takes three."""
_OTHERS_MAY_READ: Final = 0o007
_log = logging.getLogger(__name__)


class _Pair(msgspec.Struct, frozen=True):
    """A certificate with its key, ready for connections."""

    context: ssl.SSLContext
    ends_at: datetime | None
    """None if it has ended, or does not hold yet."""
    wrong: str | None
    """What is wrong with it that does not keep it from being used."""
    name: str | None
    """The first name in it."""


class _Newest(ssl.SSLContext):
    """A context for a listening socket: each connection that comes is given what is the newest pair then."""

    newest: Callable[[], ssl.SSLContext]

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        return self.newest().wrap_bio(*arguments, **named)


class Certificates:
    """The pair in use, and what is wrong with a newer one."""

    def __init__(self, settings: EdgeSettings, *, knows_clients: bool = False) -> None:
        """With `knows_clients`, who comes is asked for a certificate, too. Raises `ConfigurationError`."""
        self._settings = settings
        self._knows_clients = knows_clients
        self._seen = self._state()
        self._pair = self._read()
        self._trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._trusts_with: _Pair | None = None
        self.trouble: str | None = None
        """Why a newer pair is not used."""
        self.context = _Newest(ssl.PROTOCOL_TLS_SERVER)
        self.context.newest = lambda: self._pair.context

    @classmethod
    def of(cls, config: Config, *, knows_clients: bool = False) -> Self | None:
        """Those of a configuration; None if it has none. Raises `ConfigurationError`."""
        return None if config.tls_certificate is None else cls(config, knows_clients=knows_clients)

    async def keep(self) -> None:
        """Look at the files again and again, until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            self.look()

    def look(self) -> None:
        """Take the files as they are now, if they have changed and can be used."""
        seen = self._state()
        if seen == self._seen:
            return
        try:
            self._pair = self._read()
        except ConfigurationError as error:
            told = " ".join(each.message for each in error.faults)
            if told != self.trouble:
                _log.error("the new certificate cannot be used, and the old one stays: %s", told)
            self.trouble = told  # and is looked at again: one file of the two may be on its way
            return
        self._seen, self.trouble = seen, None
        _log.info("the certificate was read anew")

    def peer_trust(self) -> tuple[ssl.SSLContext, str | None]:
        """What a replica believes of another (the system's CAs, its own chain), and the name in its certificate."""
        if self._trusts_with is not self._pair:  # made once for each pair: all CAs of the system take 20 ms
            trust = ssl.create_default_context()
            trust.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            trust.load_verify_locations(self._files()["tls_certificate"])
            self._trust, self._trusts_with = trust, self._pair
        return self._trust, self._pair.name

    def findings(self, now: datetime) -> tuple[Finding, ...]:
        """What somebody should look at."""
        found = []
        if self.trouble is not None:
            found.append(finding(FindingCode.CERTIFICATE_UNUSABLE, [], 1, said=self.trouble))
        if (said := self.ending(now)) is not None:
            found.append(finding(FindingCode.CERTIFICATE_ENDS, [], 1, said=said))
        return tuple(found)

    def ending(self, now: datetime) -> str | None:
        """That it has ended, or ends soon; None if it does not."""
        if self._pair.wrong is not None:
            return f"Nobody believes the certificate: {self._pair.wrong}."
        if self._pair.ends_at is None or now < self._pair.ends_at - ENDS_SOON:
            return None
        return f"The certificate ends at {rfc3339(self._pair.ends_at)}."

    def _state(self) -> tuple[object, ...]:
        return tuple(_state(file) for file in self._files().values())

    def _files(self) -> dict[str, Path]:
        given = {
            "tls_certificate": self._settings.tls_certificate,
            "tls_key": self._settings.tls_key,
            "tls_client_ca": self._settings.tls_client_ca if self._knows_clients else None,
        }
        return {setting: file for setting, file in given.items() if file is not None}

    def _read(self) -> _Pair:
        files = self._files()
        faults = [Fault(setting, sentence) for setting, file in files.items() if (sentence := _unreadable(file))]
        if faults:
            raise ConfigurationError(faults=faults)
        certificate, key = files["tls_certificate"], files["tls_key"]
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(certificate, key, password=lambda: "")
        except (ssl.SSLError, OSError, ValueError) as error:
            setting, sentence = _unusable(certificate, key, error)
            raise ConfigurationError(faults=[Fault(setting, sentence)]) from None
        if "tls_client_ca" in files:
            try:
                context.load_verify_locations(files["tls_client_ca"])
            except (ssl.SSLError, OSError) as error:
                sentence = f"{files['tls_client_ca']} has no certificates of CAs in PEM ({_said(error)})."
                raise ConfigurationError(faults=[Fault("tls_client_ca", sentence)]) from None
            context.verify_mode = ssl.CERT_OPTIONAL
        return _Pair(context, *_seen(context, certificate))


def own_trust(certificate: Path) -> ssl.SSLContext:
    """What a request of this machine to its own service believes: that one certificate, whatever name it has."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return context


def key_is_open(config: Config) -> str | None:
    """That other users may read the key; None if they may not."""
    if config.tls_key is None or not config.tls_key.exists() or not config.tls_key.stat().st_mode & _OTHERS_MAY_READ:
        return None
    return f"every user may read {config.tls_key}; close it: chmod 640 {config.tls_key}"


def looked_at(config: Config) -> str | None:
    """What is wrong with the certificate now, beside what holds up a start. Raises `ConfigurationError`."""
    certificates = Certificates.of(config, knows_clients=True)
    return None if certificates is None else certificates.ending(SystemClock().now())


def _state(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _unreadable(file: Path) -> str | None:
    try:
        file.read_bytes()
    except OSError as error:
        return f"{file} cannot be read: {error.strerror}; give a file that this user may read."
    return None


def _unusable(certificate: Path, key: Path, error: Exception) -> tuple[str, str]:
    """Which of the two is wrong, and how."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(certificate)
    except (ssl.SSLError, OSError) as of_certificate:
        return "tls_certificate", f"{certificate} is no certificate in PEM ({_said(of_certificate)})."
    if "KEY_VALUES_MISMATCH" in str(error):
        return "tls_key", f"{key} is not the key of {certificate}; give the two that were made together."
    if b"ENCRYPTED" in key.read_bytes():
        return "tls_key", f"{key} has a password, which nobody could type in; give the key without one."
    return "tls_key", f"{key} is no key in PEM, or is too weak ({_said(error)})."


def _said(error: Exception) -> str:
    return getattr(error, "reason", None) or str(error)


def _seen(server: ssl.SSLContext, certificate: Path) -> tuple[datetime | None, str | None, str | None]:
    """When the certificate ends, what is wrong with it, and its first name."""
    try:
        shown = _shaken(server, own_trust(certificate))
    except ssl.SSLCertVerificationError as error:
        return None, error.verify_message, None
    except ssl.SSLError as error:
        return None, _said(error), None
    ends_s = ssl.cert_time_to_seconds(str(shown["notAfter"]))
    names = (name for kind, name in shown.get("subjectAltName", ()) if kind == "DNS")
    return datetime.fromtimestamp(ends_s, UTC), None, next(names, None)


def _shaken(server: ssl.SSLContext, client: ssl.SSLContext) -> dict[str, Any]:
    """The certificate that a client sees, by a handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = server.wrap_bio(to_server, to_client, server_side=True)
    theirs = client.wrap_bio(to_client, to_server)
    for _ in range(_TURNS_MAX):
        try:
            theirs.do_handshake()
        except ssl.SSLWantReadError:
            pass
        else:
            break
        with contextlib.suppress(ssl.SSLWantReadError):
            ours.do_handshake()
    return dict(theirs.getpeercert() or {})
