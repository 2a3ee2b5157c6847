"""Accounts and policies, as attribution knows them, from the configuration.

Never checks anything twice: what the configuration let through is usable.
Invariant: an account's own word beats that for all, which beats the default.

>>> from clickclock.foundation.config import load
>>> policies_of(load(None, {}, {"attribution": {"time_zone": "Europe/Berlin"}})).find("anybody").time_zone
'Europe/Berlin'
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from clickclock.attribution.clicks.account import Account, Accounts, ChannelRule, Consent, Profile
from clickclock.attribution.crediting.campaign_names import COLUMNS, names_of
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.files.country_table import CountryTable
from clickclock.attribution.orders.shop_order import SHOPS, Secrets
from clickclock.foundation.account_config import AccountConfig, PolicyConfig
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault, Invalid, Malformed
from clickclock.foundation.secret_file import secret

SECRET_FILES: Final = {shop.name: f"{shop.name}_webhook_secret_file" for shop in SHOPS}


def accounts_of(config: Config) -> Accounts:
    """The accounts of a configuration."""
    profile, consent = Profile(config.click_profile), Consent(config.click_consent)
    default = {"profile": profile, "consent": consent}
    return Accounts([_account(each, default) for each in config.accounts], profile, consent)


def webhook_secrets_of(config: Config) -> Secrets:
    """What the shops of all accounts sign webhooks with. Raises `Invalid` for a file that cannot be read."""
    return Secrets(
        {
            (each.client_id, shop): secret(path).encode()
            for each in config.accounts
            for shop, name in SECRET_FILES.items()
            if (path := getattr(each, name)) is not None
        }
    )


def countries_of(config: Config) -> CountryTable | None:
    """The table of countries. Raises `Malformed` for a file that cannot be read."""
    return None if config.click_countries_file is None else CountryTable(config.click_countries_file)


def policies_of(config: Config) -> Policies:
    """The policies of a configuration."""
    default = _rules(config.attribution, ())
    return Policies(
        Policy.model_validate(default), {each.client_id: _policy(config, default, each) for each in config.accounts}
    )


def _account(settings: AccountConfig, default: dict[str, Any]) -> Account:
    given = settings.model_dump(exclude_none=True, exclude={"attribution", *SECRET_FILES.values()})
    return Account.model_validate({**default, **given})


def _policy(config: Config, default: dict[str, Any], account: AccountConfig) -> Policy:
    if account.channel_rules is None:
        return Policy.model_validate({**default, **_rules(account.attribution, ())})
    given = account.model_dump(exclude_none=True, include={"channel_rules"})
    channels = Policy.model_validate(given).channel_rules
    # A table for all accounts names this one's channels, too.
    return Policy.model_validate(
        {**_rules(config.attribution, channels), **given, **_rules(account.attribution, channels)}
    )


def _rules(settings: PolicyConfig, channels: Sequence[ChannelRule]) -> dict[str, Any]:
    """The settings that are given, as a policy takes them."""
    given = settings.model_dump(exclude_none=True, exclude={"campaign_names_file"})
    if settings.campaign_names_file is None:
        return given
    return {**given, "campaign_names": _campaign_names(settings.campaign_names_file, channels)}


def _campaign_names(file: Path, channels: Sequence[ChannelRule]) -> dict[str, dict[str, str]]:
    """Raises `ConfigurationError` with every fault."""
    from clickclock.attribution.files.grid import open_grid  # noqa: PLC0415 (few have such a table)

    try:
        grid = open_grid(file, known=frozenset(COLUMNS))
        places = {name.strip().lower(): place for place, name in enumerate(grid.header)}
        if missing := [name for name in COLUMNS[1:] if name not in places]:
            raise Malformed(f"{file} has no column {' and no column '.join(missing)}; it has {', '.join(grid.header)}.")
        lines = (
            (number, {name: cells[places[name]] for name in COLUMNS if places.get(name, len(cells)) < len(cells)})
            for batch in grid.rows()
            for number, cells in zip(*batch, strict=True)
        )
        return names_of(lines, channels)
    except (Invalid, Malformed) as error:
        faults = error.faults or [Fault("", str(error))]
        named = [
            Fault("campaign_names_file", f"{each.field} of {file}: {each.message}" if each.field else each.message)
            for each in faults
        ]
        raise ConfigurationError(faults=named) from error
