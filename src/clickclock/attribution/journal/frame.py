r"""The bytes of the journal: blocks that say what they are, where they stand and whether they are whole.

Never touches a file. A segment is a head, frames one after the other, and an end mark once it is sealed; all have one
form: a header of 40 bytes, a payload, and zeros up to the next full block. A header is the magic, the kind, a
CRC-32, the payload's length, its count of lines, the segment's number, the offset in the file and the time of writing;
the checksum is of all of these and the payload.
Invariants: no block of the disk is ever shared by two frames, so that writing one cannot harm another; the number, the
offset and the journal's id go into the checksum, so that a stale frame is never taken for a new one.

>>> at = Place(seed=7, segment=1, offset=BLOCK_BYTES)
>>> whole = b"".join(build(Kind.FRAME, at, 0, 2, b"a\nb\n")[0])
>>> header = parse(whole, at)
>>> (header.count, header.length, len(whole), is_whole(header, whole[HEADER_BYTES : HEADER_BYTES + 4], at))
(2, 4, 4096, True)
"""

import struct
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

import msgspec
from isal.isal_zlib import crc32

BLOCK_BYTES = 4096
"""What a disk and its file system write at once."""
PAYLOAD_BYTES_MAX = 2**30
"""A longer one is no frame but garbage that looks like one."""
CUTS_MAX = 250
"""As many fit into a block."""
_GIL_BYTES = 5120
"""`crc32` lets go of the interpreter above this, and to get it back under load takes longer than the sum."""

_MAGIC = b"\xccJ1"
_HEADER = struct.Struct("<3scIIIQQQ")
_FIELDS = struct.Struct("<cIIQQQ")
_HEAD = struct.Struct("<16s")
_CUT = struct.Struct("<QQ")
_END = struct.Struct("<QQ")
HEADER_BYTES = _HEADER.size
_ZEROS = bytes(BLOCK_BYTES)


class Kind(Enum):
    """What a block begins."""

    HEAD = b"h"
    FRAME = b"f"
    PROBE = b"p"
    """Nothing: it proved that the disk writes, and the next frame goes over it. A log ends before it."""
    CUTS = b"c"
    """Where segments before this one end, because their disk refused to cut them there."""
    END = b"e"


_KINDS = {kind.value: kind for kind in Kind}


class Place(NamedTuple):
    """Where a block belongs: `seed` is the journal's (`seed_of`), `offset` bytes from the segment's start."""

    seed: int
    segment: int
    offset: int


class Header(msgspec.Struct, frozen=True):
    """What a block says of itself; to be believed only once `is_whole` has held."""

    kind: Kind
    crc: int
    length: int
    count: int
    written_ms: int

    @property
    def size(self) -> int:
        """Bytes on disk, zeros included."""
        return padded(self.length)


class Frame(msgspec.Struct, frozen=True):
    """What one commit wrote: `count` lines at `offset` of a segment, at `written_ms` (wall clock)."""

    segment: int
    offset: int
    count: int
    written_ms: int
    payload: bytes

    @property
    def lines(self) -> list[bytes]:
        """The lines, each with its LF."""
        return self.payload.splitlines(keepends=True) if b"\r" not in self.payload else _split(self.payload)

    @property
    def end(self) -> int:
        """The offset behind it."""
        return self.offset + padded(len(self.payload))


def padded(length: int) -> int:
    """How many bytes on disk a payload of `length` takes."""
    return -(-(HEADER_BYTES + length) // BLOCK_BYTES) * BLOCK_BYTES


def seed_of(journal_id: bytes) -> int:
    """What makes one journal's checksums its own."""
    return crc32(journal_id)


def build(kind: Kind, place: Place, written_ms: int, count: int, payload: bytes) -> tuple[Sequence[bytes], int]:
    """The bytes to write at `place`, as parts that follow each other, and the length of all (full blocks)."""
    length = len(payload)
    fields = _FIELDS.pack(kind.value, length, count, place.segment, place.offset, written_ms)
    crc = crc32(fields, _crc(payload, place.seed))
    size = padded(length)
    header = _HEADER.pack(_MAGIC, kind.value, crc, length, count, place.segment, place.offset, written_ms)
    return (header, payload, _ZEROS[: size - HEADER_BYTES - length]), size


def parse(block: bytes, place: Place) -> Header | None:
    """The header at the beginning of `block`; None if there is none that belongs to `place`."""
    if len(block) < HEADER_BYTES:
        return None
    magic, kind, crc, length, count, segment, offset, written_ms = _HEADER.unpack_from(block)
    if magic != _MAGIC or kind not in _KINDS or (segment, offset) != place[1:] or length > PAYLOAD_BYTES_MAX:
        return None
    return Header(_KINDS[kind], crc, length, count, written_ms)


def is_whole(header: Header, payload: bytes, place: Place) -> bool:
    """Whether the payload is the one that the header was written for."""
    fields = _FIELDS.pack(
        header.kind.value, header.length, header.count, place.segment, place.offset, header.written_ms
    )
    return len(payload) == header.length and crc32(fields, crc32(payload, place.seed)) == header.crc


def head(journal_id: bytes) -> bytes:
    """The payload of a head. Its own seed is 0, for who reads it does not yet know the journal."""
    return _HEAD.pack(journal_id)


def journal_id(payload: bytes) -> bytes:
    """The 16 bytes that name the journal, from a head."""
    (name,) = _HEAD.unpack(payload)
    assert isinstance(name, bytes)
    return name


def cuts(ends: Iterable[tuple[int, int]]) -> bytes:
    """The payload that says where segments end: (number, offset) of each."""
    return b"".join(_CUT.pack(number, end) for number, end in ends)


def cuts_of(payload: bytes) -> dict[int, int]:
    """The other way round: number → offset."""
    return dict(_CUT.iter_unpack(payload))


def end_mark(frames: int, lines: int) -> bytes:
    """The payload of an end mark."""
    return _END.pack(frames, lines)


def totals(payload: bytes) -> tuple[int, int]:
    """Frames and lines, from an end mark."""
    frames, lines = _END.unpack(payload)
    return frames, lines


def _crc(payload: bytes, seed: int) -> int:
    if len(payload) <= _GIL_BYTES:
        return crc32(payload, seed)
    view = memoryview(payload)
    for start in range(0, len(payload), _GIL_BYTES):
        seed = crc32(view[start : start + _GIL_BYTES], seed)
    return seed


def _split(payload: bytes) -> list[bytes]:
    """`bytes.splitlines` splits at CR as well; a line of the journal ends in LF alone."""
    return [line + b"\n" for line in payload.removesuffix(b"\n").split(b"\n")]
