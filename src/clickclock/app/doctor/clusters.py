"""Whether what a configuration's clusters run on answers, asked without a service.

Never changes anything: one question each, and where containers have an init one that is made, tried and removed.
Invariant: what is wrong with one cluster hides no other.
"""

from collections.abc import AsyncIterator, Mapping

from clickclock.app.doctor.check import Check, fail, ok
from clickclock.foundation.config import Config
from clickclock.foundation.errors import ClickclockError, ExecutorUnreachable
from clickclock.scheduler.executors.container.engine import Engine
from clickclock.scheduler.executors.container.engine import Refused as EngineRefused
from clickclock.scheduler.executors.container.options import ContainerOptions
from clickclock.scheduler.executors.kubernetes.access import Access
from clickclock.scheduler.executors.kubernetes.api import Api
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions

REMEDY = "Start it, or fix the cluster's table in the configuration; its triggers wait until it answers."


async def clusters(config: Config, environment: Mapping[str, str]) -> AsyncIterator[Check]:
    """Each that we know how to ask; those of other executors are left out."""
    for name, table in config.clusters.items():
        options = {key: value for key, value in table.items() if key != "executor"}
        try:
            if table.get("executor") == "container":
                where = await _ask_engine(ContainerOptions.model_validate(options))
            elif table.get("executor") == "kubernetes":
                where = await _ask_api(KubernetesOptions.model_validate(options), environment)
            else:
                continue
        except (ClickclockError, EngineRefused) as error:
            yield fail("clusters", f"The cluster {name} has trouble: {error}", REMEDY)
        else:
            yield ok("clusters", f"The cluster {name} answers at {where}.")


async def _ask_engine(options: ContainerOptions) -> str:
    engine = Engine(options)
    try:
        await engine.ping()
        if options.init and (lacking := await engine.lacks_init()):
            raise ExecutorUnreachable(lacking)
    except ValueError as error:
        raise ExecutorUnreachable(f"What answers at {options.engine} is not a container engine: {error!r}.") from error
    finally:
        await engine.close()
    return str(options.engine)


async def _ask_api(options: KubernetesOptions, environment: Mapping[str, str]) -> str:
    access = await Access.open(options, environment)
    api = Api(access)
    try:
        await api.answers()
    finally:
        await api.close()
    return access.server
