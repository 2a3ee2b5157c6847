"""The settings of backups: where they go, under which key, how many are kept, and how old the last may be.

Never reads a file. Invariant: no setting of these shows a password to other users of the machine.

>>> BackupSettings().backup_keep
14
"""

import re
from pathlib import Path

from pydantic import Field, SecretStr, field_validator

from clickclock.foundation.attribution_config import LAKE_SCHEMES
from clickclock.foundation.record import Settings


class BackupSettings(Settings):
    """What `Config` has of backups."""

    backup_url: str | None = Field(
        None,
        description="Where backups go: a folder, or `s3://…`, `gs://…`, `az://…`; then one is made and verified each "
        "night.",
    )
    backup_options: dict[str, SecretStr] = Field(
        {}, description="Options of that object store, as delta-rs names them, such as `AWS_ENDPOINT_URL`."
    )
    backup_key_file: Path | None = Field(
        None, description="File with the key of backups, 64 hex digits; without it, they are not encrypted."
    )
    backup_keep: int = Field(14, ge=1, le=10_000, description="Backups that are kept; older ones are deleted.")
    backup_age_hours_max: float = Field(
        49.0, gt=0, le=100_000, description="Hours after which a last verified backup is a finding."
    )

    @field_validator("backup_url")
    @classmethod
    def _refuse_what_is_no_place_and_passwords_that_all_would_see(cls, url: str | None) -> str | None:
        if url == "":
            raise ValueError("it is empty; give a folder, or leave it out")
        if url is not None and re.match(r"\w+://[^/]*:.*@", url):
            raise ValueError("it has a password, which jobs' command lines would show; give it in backup_options")
        scheme = re.match("([A-Za-z][A-Za-z0-9+.-]+):/(/?)", url or "")
        if scheme and not (scheme[1] in LAKE_SCHEMES and scheme[2]):
            raise ValueError("give a folder, or a URL that begins with s3://, gs:// or az://")
        return url
