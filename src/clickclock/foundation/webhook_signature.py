"""The signature of a call to somebody's server, as Standard Webhooks has it (standardwebhooks.com).

Never does I/O. Invariant: the signature is over id, time and body, so that a receiver notices what was altered, and
what is sent again much later.

>>> signature(b"secret", "msg_1", 1674087231, "{}")
'v1,299AHAFlDdA/rU0aTOq+IJEc1vm5uzOXtMuTIv0RYbo='
"""

import base64
import binascii
import hmac

SECRET_PREFIX = "whsec_"  # noqa: S105 (how every secret begins, and none itself)
SECRET_BYTES_MIN, SECRET_BYTES_MAX = 24, 64


def secret_of(text: str) -> bytes:
    """The key in `whsec_` and base64. Raises `ValueError` with what to do."""
    try:
        key = base64.b64decode(text.strip().removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error as error:
        raise ValueError(f"it is not {SECRET_PREFIX} and base64") from error
    if not SECRET_BYTES_MIN <= len(key) <= SECRET_BYTES_MAX:
        raise ValueError(
            f"the length of its key is {len(key)}; give {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes, at random"
        )
    return key


def signature(key: bytes, notification_id: str, timestamp_s: int, body: str) -> str:
    """The header `webhook-signature`."""
    digest = hmac.digest(key, f"{notification_id}.{timestamp_s}.{body}".encode(), "sha256")
    return f"v1,{base64.b64encode(digest).decode()}"
