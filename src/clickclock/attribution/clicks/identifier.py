"""An identifier as a number: what stands for a browser's or a device's id wherever many are worked with.

Never kept in place of the identifier: raw clicks and orders keep it as it came. Invariants: the same identifier of the
same client has the same code, whichever field brought it, on each engine; a code tells nothing of the identifier
without a list of all.

A code is the first eight bytes of an MD5, which every engine has. Among a thousand million identifiers, two of them
share a code with a chance of three in a hundred.

>>> code("shop", "device_id", "38400000-8CF0-11BD-B23E-10B96E40000D")
8275018718211542574
>>> code("shop", "gaid", "38400000-8cf0-11bd-b23e-10b96e40000d") == _
True
"""

from collections.abc import Collection, Mapping
from hashlib import md5
from string import ascii_lowercase, ascii_uppercase
from types import MappingProxyType
from typing import Final

DEVICE: Final = "d"
NAMESPACES: Final[Mapping[str, str]] = MappingProxyType(
    {"cli_ubid": "c", "device_id": DEVICE, "gaid": DEVICE, "idfa": DEVICE}
)
"""What identifies, strongest first. A `device_id` is the GAID or IDFA of its device, so that the three are one."""
STRENGTHS: Final[Mapping[str, int]] = MappingProxyType({kind: 3 - place for place, kind in enumerate(NAMESPACES)})
"""Of two clicks at one moment, the one of the stronger identifier is the later one."""
CUSTOMER: Final = "customer_id"
"""What a client calls its customer. It is on no click: orders and identifications say whose it is."""
SPACES: Final[Mapping[str, str]] = MappingProxyType({"cli_ubid": "c", CUSTOMER: CUSTOMER, **NAMESPACES})
"""What identifies whoever ordered, strongest first. A device is of several customers sooner than a browser."""
SEPARATOR: Final = "\x1f"
"""Between the parts of what is hashed."""
CODE_BYTES: Final = 8
_SMALL: Final = str.maketrans(ascii_uppercase, ascii_lowercase)


def folded(value: str) -> str:
    """With small letters for A to Z. All else stays: of other letters, programs disagree which are small.

    >>> folded("38F0-İΣ")
    '38f0-İΣ'
    """
    return value.lower() if value.isascii() else value.translate(_SMALL)


def code(client_id: str, kind: str, value: str, shared: Collection[str] = ()) -> int:
    """The code of an identifier, signed, of 64 bits; `kind` is one of `SPACES`.

    Advertising ids are written in either case, and are the same; so are values that identify nobody, which `shared`
    has as `folded`.
    """
    namespace = SPACES[kind]
    small = folded(value)
    text = small if namespace == DEVICE or small in shared else value
    digest = md5(SEPARATOR.join((client_id, namespace, text)).encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:CODE_BYTES], signed=True)
