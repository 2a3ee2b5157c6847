"""How a part is named and kept: by its contents, and under a key if there is one.

Never keeps a key anywhere. Invariants: under a key no name and no part tells anything of what is in it but its length;
a part that was changed, or renamed, is refused; a key is 64 hex digits in a file that others may not read.

>>> Plain().opened("n", Plain().kept("n", b"text"))
b'text'
"""

import hashlib
import hmac
import os
import re
import stat
from pathlib import Path
from typing import Protocol

from clickclock.app.backup.place import BackupRefused
from clickclock.foundation.errors import ConfigurationError, Fault

_NONCE_BYTES = 12


class Cipher(Protocol):
    """What a place's parts go through."""

    check: str | None
    """By which the key is known again; None without one."""

    def name(self, content: bytes) -> str:
        """The name of a part, 64 hex digits."""
        ...

    def kept(self, name: str, content: bytes) -> bytes:
        """The bytes to write."""
        ...

    def opened(self, name: str, kept: bytes) -> bytes:
        """The bytes that were given. Raises `BackupRefused` if they were changed."""
        ...


class Plain:
    """Without a key: names are SHA-256."""

    check: str | None = None

    def name(self, content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    def kept(self, name: str, content: bytes) -> bytes:
        return content

    def opened(self, name: str, kept: bytes) -> bytes:
        return kept


class Keyed:
    """AES-256-GCM with a nonce of its own for each part; names are HMAC-SHA-256."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 (it is an optional part)

        self._names = hmac.digest(key, b"clickclock: names of parts", "sha256")
        self._parts = AESGCM(hmac.digest(key, b"clickclock: parts", "sha256"))
        self.check: str | None = hmac.digest(key, b"clickclock: which key", "sha256").hex()[:32]

    def name(self, content: bytes) -> str:
        return hmac.digest(self._names, content, "sha256").hex()

    def kept(self, name: str, content: bytes) -> bytes:
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + self._parts.encrypt(nonce, content, name.encode())

    def opened(self, name: str, kept: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 (as above)

        try:
            return self._parts.decrypt(kept[:_NONCE_BYTES], kept[_NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError) as error:
            raise BackupRefused(f"The part {name} was changed since it was written, or cut.") from error


def cipher_of(file: Path | None) -> Cipher:
    """By the key in a file, or none. Raises `ConfigurationError`, `ModuleNotFoundError` without the extra."""
    if file is None:
        return Plain()
    try:
        text, mode = file.read_bytes().strip(), stat.S_IMODE(file.stat().st_mode)
    except OSError as error:
        raise ConfigurationError(faults=[Fault("backup_key_file", f"{file}: {error.strerror}.")]) from error
    if mode & stat.S_IRWXO:
        sentence = f"{file} can be read by every user (mode {mode:04o}); close it: chmod o-rwx {file}."
        raise ConfigurationError(faults=[Fault("backup_key_file", sentence)])
    if not re.fullmatch(rb"[0-9a-fA-F]{64}", text):
        sentence = f"{file} holds no key of 64 hex digits; make one with: (umask 077; openssl rand -hex 32 > {file})"
        raise ConfigurationError(faults=[Fault("backup_key_file", sentence)])
    return Keyed(bytes.fromhex(text.decode()))


def expect_key(cipher: Cipher, check: str | None, where: str, file: Path | None) -> None:
    """Refuse another key than the one that the backups of a place have. Raises `ConfigurationError`."""
    if cipher.check == check:
        return
    if check is None:
        sentence = f"the backups in {where} are not encrypted; give no key, or another place for encrypted ones."
    elif file is None:
        sentence = f"the backups in {where} are encrypted; give the file with their key (--key-file)."
    else:
        sentence = f"the key in {file} is not the one of the backups in {where}; give theirs."
    raise ConfigurationError(faults=[Fault("backup_key_file", sentence)])
