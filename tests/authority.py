"""A certificate authority for tests, by the program `openssl`: pairs of certificate and key.

Never leaves anything outside of the folder that it is given. Invariant: every pair is made anew.

>>> Authority(tmp_path).pair("jobs.example.com")   # doctest: +SKIP
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


@dataclass(frozen=True)
class Pair:
    """Two files."""

    certificate: Path
    key: Path

    def replace(self, other: "Pair") -> None:
        """Put another pair into the place of this one."""
        self.certificate.write_bytes(other.certificate.read_bytes())
        self.key.write_bytes(other.key.read_bytes())


class Authority:
    """Signs what it is asked to sign."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = 0
        self.own = self._self_signed("people", days=30)

    def pair(self, name: str, *, days: int = 30, signed: bool = False, purpose: str = "serverAuth") -> Pair:
        """A pair for a host of this name, that signs itself or is signed by the authority."""
        return self._signed(name) if signed else self._self_signed(name, days, f"extendedKeyUsage={purpose}")

    def _self_signed(self, name: str, days: int, *extensions: str) -> Pair:
        pair = self._next()
        names = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
        names += [word for each in extensions for word in ("-addext", each)]
        _openssl("req", "-x509", *_KEY, *names, "-days", str(days), "-out", pair.certificate, "-keyout", pair.key)
        return pair

    def _signed(self, name: str) -> Pair:
        pair = self._next()
        request = pair.certificate.with_suffix(".csr")
        _openssl("req", *_KEY, "-subj", f"/CN={name}", "-out", request, "-keyout", pair.key)
        by = ("-CA", self.own.certificate, "-CAkey", self.own.key, "-CAcreateserial", "-days", "1")
        _openssl("x509", "-req", "-in", request, *by, "-out", pair.certificate)
        return pair

    def _next(self) -> Pair:
        self._made += 1
        return Pair(self._folder / f"{self._made}.pem", self._folder / f"{self._made}.key")


def _openssl(*words: str | Path) -> None:
    subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)
