"""Path transforms: what of a path a model of the table is to see, beside its plain self.

Never changes how often a path converted. Invariants: no path becomes empty; a transform of a transformed path by
`exposure` or `first` changes nothing more.

On D > A > B > B > C > D > C > C:
unique      as it is                                     D > A > B > B > C > D > C > C
exposure    repeats in a row count once                  D > A > B > C > D > C
first       each channel where it came first             D > A > B > C
frequency   as first, with how often it came             D(2) > A(1) > B(2) > C(3)

Source: the names and the example are those of Google's Fractribution.

>>> exposure(("google", "google", "mail", "google"))
('google', 'mail', 'google')
"""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import groupby
from types import MappingProxyType

Path = tuple[str, ...]
Transform = Callable[[Path], Path]


class NoTransform(ValueError):
    """There is no such transform; the text says which there are."""


def unique(path: Path) -> Path:
    """The path as it is: every touchpoint counts."""
    return path


def exposure(path: Path) -> Path:
    """Without repeats in a row."""
    return tuple(channel for channel, _ in groupby(path))


def first(path: Path) -> Path:
    """Each channel once, where it came first."""
    return tuple(dict.fromkeys(path))


def frequency(path: Path) -> Path:
    """Each channel once, where it came first, named with its count: `google(2)` is a channel of its own."""
    return tuple(f"{channel}({count})" for channel, count in Counter(path).items())


TRANSFORMS: Mapping[str, Transform] = MappingProxyType(
    {"unique": unique, "exposure": exposure, "first": first, "frequency": frequency}
)
"""Every transform, by name."""


def transform_of(name: str) -> Transform:
    """The transform of this name. Raises `NoTransform`."""
    if name not in TRANSFORMS:
        raise NoTransform(f"There is no transform {name}; there are {', '.join(TRANSFORMS)}.")
    return TRANSFORMS[name]
