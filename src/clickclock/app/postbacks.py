"""Postbacks: partners made from the configuration, the files of calls to them, and the sending.

Never calls anybody that no `[[postback]]` table names. Invariant: a call is written, with its order noted as told,
before it is made.

>>> partners_of(Config())
()
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from clickclock.app.data_folder import make_data_dir
from clickclock.app.exporting import exporter_of, folder_of
from clickclock.app.lake import docket_of, found_lake
from clickclock.app.lake_lock import among_others
from clickclock.app.trail import record
from clickclock.attribution.agents.postback_lister import PostbackLister
from clickclock.attribution.agents.postback_sender import Called, PostbackSender
from clickclock.attribution.networks.partners import PartnerServer
from clickclock.attribution.reporting.postbacks import Calls
from clickclock.attribution.uploads.export import Exported, Wanted
from clickclock.attribution.uploads.postback import Partner, Postback, rules
from clickclock.foundation.call_template import OF_CLICK
from clickclock.foundation.clock import SystemClock
from clickclock.foundation.config import Config
from clickclock.foundation.errors import Invalid
from clickclock.foundation.postback_config import PostbackConfig
from clickclock.scheduler.access.audit import Resource


def send(config: Config, names: Sequence[str] = ()) -> tuple[Exported, list[Called]]:
    """Write the calls that partners do not know yet, and make those that wait; all partners, or these."""
    tables = _chosen(config, names)
    lake = found_lake(config)
    make_data_dir(config.data_dir)
    with among_others(config, is_private=True), docket_of(config).explaining():
        exported = exporter_of(config, lake).step(_wanted(config, tables))
    sender = _sender(config, tables)
    if next(sender.waiting(), None) is not None:
        record(config, "attribution postbacks send", Resource.EXPORT, "/".join(each.name for each in tables))
    return exported, sender.step()


def look(config: Config, names: Sequence[str] = ()) -> tuple[Exported, list[tuple[str, Postback]]]:
    """What would be written now, and what waits already; nothing is written or sent."""
    tables = _chosen(config, names)
    exported = exporter_of(config, found_lake(config)).look(_wanted(config, tables))
    return exported, list(_sender(config, tables).waiting())


def found(config: Config, asked: Calls) -> dict[str, Any]:
    """The calls that are in this installation's folder of exports, as JSON; see `PostbackLister.postbacks`."""
    postbacks, has_more = PostbackLister(folder_of(config)).postbacks(asked)
    return {"postbacks": postbacks, "hasMore": has_more}


def partners_of(config: Config) -> tuple[Partner, ...]:
    """Every partner of the configuration."""
    return tuple(map(_partner, config.postback))


def _chosen(config: Config, names: Sequence[str]) -> tuple[PostbackConfig, ...]:
    if not config.postback:
        raise Invalid("No partner is configured; add a [[postback]] table to the configuration.")
    known = {each.name: each for each in config.postback}
    if unknown := sorted(set(names) - known.keys()):
        raise Invalid(f"unknown partner {', '.join(unknown)}; give one of {', '.join(known)}.")
    return tuple(each for each in config.postback if not names or each.name in names)


def _wanted(config: Config, tables: Sequence[PostbackConfig]) -> Wanted:
    return Wanted(config.upload_model, (), partners=tuple(map(_partner, tables)))


def _sender(config: Config, tables: Sequence[PostbackConfig]) -> PostbackSender:
    servers = {each.name: partial(PartnerServer, each) for each in tables}
    return PostbackSender(folder_of(config), servers, SystemClock())


def _partner(table: PostbackConfig) -> Partner:
    of_click = [each for each in table.names if each.name.startswith(OF_CLICK)]
    names = [each.name.removeprefix(OF_CLICK) for each in of_click]
    required = [each.name.removeprefix(OF_CLICK) for each in of_click if not each.is_optional]
    return Partner(
        name=table.name,
        rules=rules(table.hold_hours, table.age_days, with_changes=table.changes),
        channels=table.channels,
        kinds=table.kinds,
        model=table.model,
        client_id=table.client_id,
        fields=tuple(dict.fromkeys(names)),
        required=tuple(dict.fromkeys(required)),
    )
