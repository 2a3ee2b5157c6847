"""Whose certificates a client believes: the system's, and those of a file.

Never switches a check off for a service elsewhere. Invariant: at a loopback address, only what the given file names is
believed, and the name in the certificate is not compared, because it is that of the machine.

>>> trust_of(None, is_here=False) is not None
True
"""

import ssl
from pathlib import Path

from clickclock.foundation.errors import ConfigurationError


def trust_of(ca_file: Path | None, *, is_here: bool) -> ssl.SSLContext | bool:
    """What decides about the certificate of a service. Raises `ConfigurationError`."""
    if ca_file is None:
        return ssl.create_default_context() if _system_has_any() else True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_here else ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the file may have the service's own certificate
    context.check_hostname = not is_here
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        said = error.strerror if error.filename or error.errno else "it holds no certificates in PEM"
        raise ConfigurationError(f"The certificates of {ca_file} cannot be used: {said or error}.") from None
    return context


def advice(error: BaseException, url: str) -> str | None:
    """The remedy where a connection failed because of TLS; None if it did not."""
    cause = _ssl_error(error)
    if isinstance(cause, ssl.SSLCertVerificationError):
        said = cause.verify_message
        if "mismatch" in said or "not valid for" in said:
            return f"Its certificate is for another name ({said}). Give the address that the certificate names."
        if "expired" in said:
            return f"Its certificate is not valid any more ({said}). Whoever runs it has to renew it."
        return (
            f"Its certificate is not believed ({said}). Give the file with its CA, or with the certificate itself: "
            "--ca-file, CLICKCLOCK_CA_FILE, or `ca_file` of the client."
        )
    if cause is not None and "WRONG_VERSION" in str(cause):
        return f"It does not speak TLS there. Give http:// instead of https:// in {url}, if that is meant."
    if "Server disconnected without sending a response" in str(error) and url.startswith("http://"):
        return "It hung up at once. If it has a certificate, give https:// instead of http://."
    return None


def _ssl_error(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def _system_has_any() -> bool:
    """Whether this machine has certificates of its own; small images have none."""
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile) or (bool(paths.capath) and any(Path(paths.capath).iterdir()))
