"""`clickclock doctor`: what is wrong with an installation, whether its service runs or not, and what to do about it.

Never changes anything. Invariant: a part that cannot be looked at is told, and hides no other.

>>> [each.check for each in doctor(config, "http://127.0.0.1:8080", {})][:2]   # doctest: +SKIP
['service', 'dataFolder']
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Mapping

from clickclock.app.clusters import clusters as make_clusters
from clickclock.app.doctor.check import Check, Result, fail, ok
from clickclock.app.doctor.clicks import clicks
from clickclock.app.doctor.clusters import clusters
from clickclock.app.doctor.machine import machine
from clickclock.app.doctor.service import service, supervisor
from clickclock.app.doctor.stores import stores
from clickclock.app.models import chosen_models
from clickclock.app.targets import open_targets
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ConfigurationError

__all__ = ["Check", "Result", "doctor", "of_configuration", "of_service"]


def of_configuration(error: ConfigurationError) -> list[Check]:
    """Every fault of a configuration that is not usable."""
    remedy = "Fix this setting; `clickclock check-config` shows where each comes from."
    return [fail("configuration", f"{each.field}: {each.message}", remedy) for each in error.faults]


def of_service(url: str) -> list[Check]:
    """What the service says, and nothing of this machine."""
    return service(url, None).checks


def doctor(config: Config, url: str, environment: Mapping[str, str]) -> list[Check]:
    """Look at everything."""
    return asyncio.run(_doctor(config, url, environment))


async def _doctor(config: Config, url: str, environment: Mapping[str, str]) -> list[Check]:
    asked = await asyncio.to_thread(service, url, config.data_dir)
    clock = SystemClock()
    found = [*_configured(config), *asked.checks, *machine(config.data_dir, clock.now())]
    if any(each.check == "dataFolder" and each.result is Result.OK for each in found):
        found.append(supervisor(config.data_dir))
    with _told_if_forbidden(found, "store"):
        found += [each async for each in stores(config, service_answers=asked.answers)]
    if not asked.answers:
        found += [each async for each in clusters(config, environment)]
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


def _configured(config: Config) -> list[Check]:
    """What `serve` would refuse beside single settings."""
    found: list[Check] = []
    looks: list[Callable[[], object]] = [
        lambda: make_clusters(config, "", SystemClock(), {}),
        lambda: open_targets(config),
        lambda: config.names_models and chosen_models(config),
    ]
    for made in looks:
        try:
            made()
        except ConfigurationError as error:
            found += of_configuration(error)
    return found or [ok("configuration", "It is usable.")]
