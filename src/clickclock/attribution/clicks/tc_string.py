"""The consent string of the IAB's framework (TCF 2), as consent banners and ad networks pass it on.

Never decides what a click may say: `consent.py` does. Reads the purposes alone, and neither vendors nor restrictions of
publishers. Source: IAB Tech Lab, "Transparency and Consent String with Global Vendor List Format", version 2.

>>> sorted(purposes_of("COvFyGBOvFyGBAbAAAENAPCAAOAAAAAAAAAAAEEUACCKAAA.IFoEUQQgAIQw"))
[1, 2, 3]
>>> purposes_of("COvFyGB") is None
True
"""

import re
from base64 import urlsafe_b64decode
from typing import Final

_VERSION: Final = 2
_VERSION_BITS: Final = 6
_PURPOSES: Final = 24
_CONSENTED_AT: Final = 152
"""Where the purposes begin to which the visitor consents, in bits."""
_LEGITIMATE_AT: Final = _CONSENTED_AT + _PURPOSES
"""The same of those for which vendors may claim a legitimate interest."""
BY_INTEREST: Final = frozenset({2, 7, 8, 9, 10, 11})
"""The purposes that the framework lets rest on a legitimate interest, since its version 2.2."""
_is_core: Final = re.compile(r"[A-Za-z0-9_-]{34,1500}").fullmatch


def purposes_of(text: str) -> frozenset[int] | None:
    """The numbers of the purposes that a string allows, from 1 to 24; None if it is no such string."""
    core = text.strip().partition(".")[0]
    if not _is_core(core):
        return None
    core = core[: len(core) - (len(core) % 4 == 1)]
    raw = urlsafe_b64decode(core + "=" * (-len(core) % 4))
    bits = int.from_bytes(raw)

    def is_set(place: int) -> int:
        return bits >> (8 * len(raw) - 1 - place) & 1

    if bits >> (8 * len(raw) - _VERSION_BITS) != _VERSION:
        return None
    consented = {number for number in range(1, _PURPOSES + 1) if is_set(_CONSENTED_AT + number - 1)}
    return frozenset(consented | {number for number in BY_INTEREST if is_set(_LEGITIMATE_AT + number - 1)})
