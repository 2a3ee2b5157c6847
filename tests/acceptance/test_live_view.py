"""Watching clicks with the real programs: what the collector takes is seen through the service, across its restart."""

import itertools
import queue
import threading
from pathlib import Path

import httpx

from clickclock.client import Client, Sighting, Unreachable
from tests.acceptance.collecting import Collector, collecting
from tests.acceptance.service import running

SEEN_WITHIN_S = 60.0


class Viewer:
    """Somebody who watches, on a thread of their own, until the service is gone for good."""

    def __init__(self, url: str) -> None:
        self._seen: queue.Queue[Sighting] = queue.Queue()
        self.thread = threading.Thread(target=self._watch, args=(url,))
        self.thread.start()

    def next(self) -> Sighting:
        """What is seen next."""
        return self._seen.get(timeout=SEEN_WITHIN_S)

    def clients(self, count: int) -> list[str]:
        """The clients of the next so many entries."""
        entries = (seen for seen in iter(self.next, None) if seen.seen != "watching")
        return [seen.fields["clientId"] for seen in itertools.islice(entries, count)]

    def _watch(self, url: str) -> None:
        try:
            with Client(url) as client:
                for seen in client.follow_clicks():
                    self._seen.put(seen)
                    if seen.fields.get("clientId") == "last":
                        return
        except Unreachable:
            return


def _click(collector: Collector, client_id: str) -> int:
    return httpx.get(f"{collector.url}/aclick?client_id={client_id}&seller_id=s&atag=a").status_code


def test_a_viewer_sees_every_request_once_although_the_service_is_killed(tmp_path: Path) -> None:
    with collecting(tmp_path) as collector:
        with running(tmp_path) as service:
            viewer = Viewer(service.url)
            assert viewer.next().seen == "watching"
            assert _click(collector, "first") == 400
            seen = viewer.next()
            assert (seen.seen, seen.fields["clientId"]) == ("rejection", "first")
            assert {fault["field"] for fault in seen.fields["faults"]} == {"asvt", "cli_ubid", "event_time"}
            service.kill()
            assert _click(collector, "second") == 400
        with running(tmp_path, port=int(service.url.rpartition(":")[2])):
            assert viewer.clients(1) == ["second"]
            assert [_click(collector, name) for name in ("third", "last")] == [400, 400]
            assert viewer.clients(2) == ["third", "last"]
            viewer.thread.join(SEEN_WITHIN_S)
            assert not viewer.thread.is_alive()
