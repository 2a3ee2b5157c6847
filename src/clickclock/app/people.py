"""The identity provider by which people sign in, from the settings.

Never asks it. Invariants: what is wrong with its settings is told before anything starts; people whose grants nobody
can have any more are signed out at the start.

>>> open_provider(config, SystemClock())   # doctest: +SKIP
"""

from clickclock.foundation import extras
from clickclock.foundation.clock import Clock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError, Fault
from clickclock.scheduler.identity_provider import IdentityProvider
from clickclock.scheduler.store import Store


def open_provider(config: Config, clock: Clock) -> IdentityProvider | None:
    """The provider; None if there is none. Raises `ConfigurationError`."""
    if config.oidc is None:
        return None
    if not extras.is_installed(extras.OIDC):
        how = extras.how_to_install(extras.OIDC)
        raise ConfigurationError(faults=[Fault("oidc", f"Signing in needs a part that is not installed; {how}.")])
    secret = None if config.oidc_client_secret is None else config.oidc_client_secret.get_secret_value()
    if config.oidc.client_secret_file is not None:
        try:
            secret = config.oidc.client_secret_file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                faults=[Fault("oidc.client_secret_file", f"It cannot be read: {error}.")]
            ) from error
    return IdentityProvider(config.oidc, secret or None, clock)


async def sign_out_beyond(config: Config, store: Store) -> None:
    """End the sessions of people that the settings would not let begin now."""
    rows = () if config.oidc is None else config.oidc.grants
    await store.browser_sessions.end_beyond([row.grant() for row in rows])
