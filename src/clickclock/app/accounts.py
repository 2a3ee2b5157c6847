"""Accounts and policies, as attribution knows them, from the configuration.

Never checks anything twice: what the configuration let through is usable.
Invariant: an account's own word beats that for all, which beats the default.

>>> from clickclock.foundation.config import load
>>> policies_of(load(None, {}, {"attribution": {"time_zone": "Europe/Berlin"}})).find("anybody").time_zone
'Europe/Berlin'
"""

from typing import Any, Final

from clickclock.attribution.clicks.account import Account, Accounts, Consent, Profile
from clickclock.attribution.crediting.policy import Policies, Policy
from clickclock.attribution.orders.shop_order import SHOPS, Secrets
from clickclock.foundation.account_config import AccountConfig
from clickclock.foundation.config import Config
from clickclock.foundation.secret_file import secret

_SECRET_FILES: Final = {shop.name: f"{shop.name}_webhook_secret_file" for shop in SHOPS}


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
            for shop, name in _SECRET_FILES.items()
            if (path := getattr(each, name)) is not None
        }
    )


def policies_of(config: Config) -> Policies:
    """The policies of a configuration."""
    default = config.attribution.model_dump(exclude_none=True)
    return Policies(
        Policy.model_validate(default), {each.client_id: _policy(default, each) for each in config.accounts}
    )


def _account(settings: AccountConfig, default: dict[str, Any]) -> Account:
    given = settings.model_dump(exclude_none=True, exclude={"attribution", *_SECRET_FILES.values()})
    return Account.model_validate({**default, **given})


def _policy(default: dict[str, Any], account: AccountConfig) -> Policy:
    rules = account.model_dump(exclude_none=True, include={"channel_rules"})
    return Policy.model_validate({**default, **rules, **account.attribution.model_dump(exclude_none=True)})
