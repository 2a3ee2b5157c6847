"""Everything that the doctor looks at, one after the other.

Never changes anything. Invariant: an unreadable part is reported, and hides no other.

>>> asyncio.run(look(config, "http://127.0.0.1:8080", {}))[0].check   # doctest: +SKIP
'configuration'
"""

import asyncio
import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime

from clickclock.app import backup_state
from clickclock.app.certificates import Certificates, key_is_open
from clickclock.app.checking import check
from clickclock.app.doctor.check import Check, Result, fail, ok, unusable, warn
from clickclock.app.doctor.clusters import clusters
from clickclock.app.doctor.machine import machine, zones
from clickclock.app.doctor.service import Terms, service, supervisor
from clickclock.app.doctor.stores import stores
from clickclock.foundation import extras
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError


async def look(config: Config, url: str, environment: Mapping[str, str], terms: Terms | None) -> list[Check]:
    """Look at everything."""
    asked = await asyncio.to_thread(service, url, config.data_dir, terms)
    clock = SystemClock()
    found = [*_configured(config), *_certificate(config, clock), *asked.checks]
    with _told_if_forbidden(found, "dataFolder"):
        found += machine(config.data_dir)
    found.append(zones(clock.now()))
    if any(each.check == "dataFolder" and each.result is not Result.FAIL for each in found):
        found.append(supervisor(config.data_dir))
        found.append(_backup(config, clock.now()))
    with _told_if_forbidden(found, "store"):
        found += [each async for each in stores(config, service_answers=asked.answers)]
    if not asked.answers:
        found += [each async for each in clusters(config, environment)]
    if not extras.is_installed(extras.ATTRIBUTION):
        how = extras.how_to_install(extras.ATTRIBUTION)
        return [*found, ok("journals", f"Attribution is not installed, so there are none; for it, {how}.")]
    from clickclock.app.doctor.clicks import clicks  # noqa: PLC0415 (it is an optional part)

    with _told_if_forbidden(found, "journals"):
        found += clicks(config, clock.epoch_ms())
    return found


@contextlib.contextmanager
def _told_if_forbidden(found: list[Check], check: str) -> Iterator[None]:
    """What this user may not read is a check that fails."""
    try:
        yield
    except PermissionError as error:
        remedy = "Run the doctor as the user that runs the service."
        found.append(fail(check, f"{error.filename} cannot be read: {error.strerror}.", remedy))


def _backup(config: Config, now: datetime) -> Check:
    age = backup_state.age(config)
    if age is None:
        return ok("backup", "None is configured; give backup_url, and one is made and verified each night.")
    if wrong := age.findings(now):
        return warn("backup", age.sentence(now), wrong[0].remedy)
    return ok("backup", age.sentence(now))


def _certificate(config: Config, clock: SystemClock) -> list[Check]:
    try:
        certificates = Certificates.of(config, knows_clients=True)
    except ConfigurationError:
        return []  # which is a fault of the configuration
    if certificates is None:
        return []
    if (open_key := key_is_open(config)) is not None:
        return [warn("certificate", f"{open_key}.", "Who has the key can pass for this service; make another pair.")]
    if (ending := certificates.ending(clock.now())) is not None:
        return [warn("certificate", ending, "Renew it in its place; the service takes it without a restart.")]
    return [ok("certificate", f"{config.tls_certificate} can be used.")]


def _configured(config: Config) -> list[Check]:
    """What `serve` would refuse beside single settings."""
    try:
        check(config)
    except ConfigurationError as error:
        return unusable(error)
    return [ok("configuration", "It is usable.")]
