"""An export: what was asked for, and what it made of it.

Never does I/O. Invariant: each credit is in a file, or has a fate that is counted.

>>> [each.name for each in Wanted("last").recipients]
['google', 'meta']
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from clickclock.attribution.uploads import google_upload, meta_upload
from clickclock.attribution.uploads.meta_upload import Change
from clickclock.attribution.uploads.postback import Partner
from clickclock.attribution.uploads.upload import (
    Conversion,
    Fate,
    Kind,
    Network,
    Recipient,
    Upload,
    conversion,
    network_of,
)


@dataclass(frozen=True)
class Wanted:
    """A request for an export: the model, the networks, the partners and the clients; None means all clients."""

    model: str
    networks: tuple[Network, ...] = tuple(Network)
    clients: tuple[str, ...] | None = None
    conversion_name: str = google_upload.CONVERSION_NAME
    """What Google's conversion action is called in the account."""
    partners: tuple[Partner, ...] = ()
    others: tuple[Conversion, ...] = ()
    """Conversions that are no purchases; those of `networks` are exported."""

    @property
    def recipients(self) -> tuple[Recipient, ...]:
        """Every ad network and partner that the export is for."""
        names = {Network.GOOGLE: self.conversion_name, Network.META: meta_upload.EVENT_NAME}
        purchases = [conversion(network, names[network]) for network in self.networks]
        return (*purchases, *(each for each in self.others if each.network in self.networks), *self.partners)

    def clients_of(self, recipient: Recipient) -> tuple[str, ...] | None:
        """The clients whose orders it gets; None means all clients."""
        if recipient.client_id is None:
            return self.clients
        return (recipient.client_id,) if self.clients is None or recipient.client_id in self.clients else ()

    def model_of(self, recipient: Recipient) -> str:
        """The model whose credit it gets."""
        return recipient.model or self.model


class File(NamedTuple):
    """A file, and what is in it."""

    name: str
    recipient: str
    """The recipient's name."""
    client_id: str
    uploads: Sequence[Upload]

    @property
    def network(self) -> str:
        """The ad network's name, or the partner's."""
        return network_of(self.recipient)

    @property
    def kinds(self) -> Counter[Kind]:
        """How many of each kind."""
        return Counter(each.kind for each in self.uploads)


@dataclass
class Exported:
    """What a step did."""

    version: int | None = None
    """The result version; None if there is none yet, and so nothing to export."""
    files: list[File] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    """Files of an export that was cut off, which have their names now."""
    fates: dict[str, Counter[Fate]] = field(default_factory=lambda: defaultdict(Counter))
    """Why the other credits are in no file."""
    changes: dict[str, Counter[Change]] = field(default_factory=lambda: defaultdict(Counter))
    """In how many conversions a field is not as the click had it."""
