"""The types of which targets' options are made: secrets that stand in files, and addresses of services.

Never shows what it read: a fault names the file, or the part that an address lacks.

>>> _mail_address("ops@example.com")
'ops@example.com'
"""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, SecretStr

from clickclock.foundation.service_address import hook_address, service_address

SECRET_BYTES_MAX = 8192
_ADDRESS = re.compile(r"[^\s<>,;:\"@]+@[A-Za-z0-9.-]+")


def _read(value: object) -> SecretStr:
    path = Path(str(value))
    try:
        content = path.read_bytes()[: SECRET_BYTES_MAX + 1]
        text = content.decode().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ValueError(f"{path} cannot be read: {why}") from None
    if not text or len(content) > SECRET_BYTES_MAX:
        raise ValueError(f"{path} holds no secret: it is {'empty' if not text else 'too long'}")
    return SecretStr(text)


def _secret_address(secret: SecretStr) -> SecretStr:
    try:
        service_address(secret.get_secret_value())
    except ValueError as error:
        raise ValueError(f"the file holds no address: {error}") from None
    return secret


def _mail_address(value: str) -> str:
    if not _ADDRESS.fullmatch(value):
        raise ValueError(f"{value!r} is no address such as ops@example.com")
    return value


SecretFile = Annotated[SecretStr, BeforeValidator(_read)]
"""A file's name; its value is what the file holds, read once."""
AddressFile = Annotated[SecretStr, BeforeValidator(_read), AfterValidator(_secret_address)]
"""A file with the address of a webhook, which is a secret itself."""
HookAddress = Annotated[str, AfterValidator(hook_address)]
ServiceAddress = Annotated[str, AfterValidator(service_address)]
MailAddress = Annotated[str, AfterValidator(_mail_address)]
