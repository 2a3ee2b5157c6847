"""A chain of hashes over records: each record's hash covers the hash before it, so no record changes or goes unseen.

Never reads or writes a record. Invariants: a hash depends on what the record says, not on how its JSON is spelled;
fields without a value are left out, so that a field that a newer release adds breaks no old hash.

>>> first = {"position": 1, "principal": "ada", "address": None}
>>> first["hash"] = digest(BEGINNING, first)
>>> fault_of(BEGINNING, 0, first), fault_of(BEGINNING, 0, {**first, "principal": "bob"})
(None, 'was changed after it was written')

A chain as it is read begins at its end: the newest record first, and after the oldest its head, which says where
retention has cut it.
"""

import hmac
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

_text_of = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
BEGINNING = "0" * 64
"""What stands for the hash before the first record."""


def digest(previous: str, record: Mapping[str, Any]) -> str:
    """The hash of a record, of its fields as JSON names them; its own `hash` is not among them."""
    told = {name: value for name, value in record.items() if value is not None and name != "hash"}
    return sha256(f"{previous}\n{_text_of(told)}".encode()).hexdigest()


def fault_of(previous: str, position: int, record: Mapping[str, Any]) -> str | None:
    """The fault of a record that comes after the one with this hash and position; None if it has none."""
    if record["position"] != position + 1:
        return f"comes after position {position}: what was between them is gone"
    if digest(previous, record) != record["hash"]:
        return "was changed after it was written"
    return None


def signature(key: bytes, chain: str, position: int, hash_: str) -> str:
    """The word of whoever has the key that a chain's records up to this position were removed by it."""
    return hmac.new(key, f"{chain}\n{position}\n{hash_}".encode(), sha256).hexdigest()


@dataclass(slots=True)
class Verdict:
    """The finding about one chain; `fault` is about its first break, from its beginning on."""

    chain: str
    records: int = 0
    newest: tuple[int, str] | None = None
    """Position and hash of the last record."""
    removed_through: int = 0
    fault: str | None = None


def verify(lines: Iterable[Mapping[str, Any]], known: Mapping[str, tuple[int, str]] | None = None) -> Iterator[Verdict]:
    """A verdict on each chain of these lines: its records from its end to its beginning, then its head.

    `known` are position and hash that some chains had at an earlier time: what was there then is to be there still.
    """
    known = dict(known or {})
    verdict, newer = Verdict(""), None
    for line in lines:
        if "removedThrough" not in line:
            verdict.records += 1
            verdict.newest = verdict.newest or (line["position"], line["hash"])
            if newer is not None and (fault := fault_of(line["hash"], line["position"], newer)):
                verdict.fault = _sentence(newer, fault)
            if known.get(line["chain"]) == (line["position"], line["hash"]):
                del known[line["chain"]]
            newer = line
            continue
        verdict.chain, verdict.removed_through = line["chain"], line["removedThrough"]
        # Retention may have gone on while the records were read.
        if newer is not None and newer["position"] > line["removedThrough"]:
            fault = fault_of(line["removedHash"], line["removedThrough"], newer)
            verdict.fault = _sentence(newer, fault) if fault else verdict.fault
        if line["isSigned"] is False:
            verdict.fault = f"position {line['removedThrough']}: its head was not signed by the service's key"
        position, _ = known.pop(line["chain"], (0, ""))
        if position > line["removedThrough"]:
            verdict.fault = verdict.fault or f"position {position}: the record that was there is gone, or another"
        yield verdict
        verdict, newer = Verdict(""), None
    for chain, (position, _) in known.items():
        yield Verdict(chain, fault=f"position {position}: the chain is gone")


def _sentence(record: Mapping[str, Any], fault: str) -> str:
    return f"position {record['position']}: record {record['auditId']} {fault}"
