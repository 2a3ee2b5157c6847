"""The settings of attribution: its lake, its runs, and how long things are kept.

Never reads a file: `config.py` does. Invariant: no setting of these shows a password to other users of the machine.

>>> AttributionSettings().attribution_engine
'duckdb'
"""

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, ValidationInfo, field_validator

from clickclock.foundation.account_config import PolicyConfig
from clickclock.foundation.postback_config import Postbacks
from clickclock.foundation.record import Settings
from clickclock.foundation.send_config import Conversions, Sendings, check_names

LAKE_SCHEMES = ("s3", "s3a", "gs", "az", "azure", "adl", "abfs", "abfss", "file")
"""What delta-rs knows by these names."""
DAYS_MAX = 36_500
"""A hundred years: a date so long ago can be computed."""


class AttributionSettings(Settings):
    """What `Config` has of attribution."""

    lake_url: str | None = Field(
        None,
        description="Where the lake is: a folder, or `s3://…`, `gs://…`, `az://…`; if not given, in the data folder.",
    )
    lake_options: dict[str, SecretStr] = Field(
        {}, description="Options of the object store, as delta-rs names them, such as `AWS_ENDPOINT_URL`."
    )
    lake_history_days: float = Field(
        7.0,
        ge=0,
        le=DAYS_MAX,
        description="Days for which replaced files of the lake are kept, for readers of older versions.",
    )
    attribution: PolicyConfig = Field(PolicyConfig(), description="How orders are credited, of all accounts.")
    attribution_models: dict[str, dict[str, Any]] = Field(
        {}, description="Models that runs credit with, by name, with their settings; all built-in ones if not given."
    )
    attribution_engine: Literal["duckdb", "spark"] = Field("duckdb", description="What runs do their work on.")
    attribution_memory_mb: int = Field(
        2000,
        ge=256,
        le=100_000_000,
        description="Memory that a run's engine may take before it spills to disk, in megabytes.",
    )
    attribution_threads: int = Field(2, ge=1, le=1024, description="Threads of a run's engine.")
    spark_master: str = Field("local[*]", description="Where Spark runs: `local[*]`, `spark://HOST:7077`, ….")
    spark_scratch: Path | None = Field(
        None, description="Folder that a run and all of Spark's executors see; if not given, in the data folder."
    )
    upload_model: str = Field("last", description="The model whose credit is uploaded to ad networks.")
    google_conversion_name: str = Field("Order", description="What the conversion action is called in Google Ads.")
    conversion: Conversions = Field((), description="Kinds of orders, beside purchases, that networks get.")
    send: Sendings = Field((), description="Where conversions are sent; without it, files are all there is.")
    postback: Postbacks = Field((), description="Partners that are called for orders that their clicks earned.")
    click_retention_days: int | None = Field(
        None, ge=1, le=DAYS_MAX, description="Days after which clicks and rejections are deleted; never if not given."
    )
    order_retention_days: int | None = Field(
        None,
        ge=1,
        le=DAYS_MAX,
        description="Days after which orders and their credits are deleted; never if not given.",
    )

    @field_validator("conversion")
    @classmethod
    def _is_not_called_as_purchases_are(cls, conversion: Conversions, info: ValidationInfo) -> Conversions:
        name = info.data.get("google_conversion_name")
        if any(each.google_name == name for each in conversion):
            raise ValueError(f"{name} is the google_conversion_name of purchases; give another google_name")
        return conversion

    @field_validator("send")
    @classmethod
    def _names_each_conversion(cls, send: Sendings, info: ValidationInfo) -> Sendings:
        check_names(send, info.data.get("conversion", ()))
        return send

    @field_validator("lake_url")
    @classmethod
    def _refuse_what_is_no_lake_and_passwords_that_all_would_see(cls, url: str | None) -> str | None:
        if url is not None and re.match(r"\w+://[^/]*:.*@", url):
            raise ValueError("it has a password, which jobs' command lines would show; give it in lake_options")
        scheme = re.match("([A-Za-z][A-Za-z0-9+.-]+):/(/?)", url or "")
        if scheme and not (scheme[1] in LAKE_SCHEMES and scheme[2]):
            raise ValueError("give a folder, or a URL that begins with s3://, gs:// or az://")
        return url

    @field_validator("attribution_models")
    @classmethod
    def _refuse_names_that_are_no_columns(cls, models: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        wrong = [name for name in models if not re.fullmatch("[a-z][a-z0-9_]{0,40}", name)]
        if wrong:
            raise ValueError(f"a model's name is small letters, digits and _; these are not: {', '.join(wrong)}")
        return models

    @property
    def names_models(self) -> bool:
        """Whether it says anything of models. They are slow to load, and are looked at only then."""
        return bool(self.attribution_models) or "upload_model" in self.model_fields_set
