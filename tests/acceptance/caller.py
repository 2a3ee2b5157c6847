"""Somebody who uses a running service over HTTP, and runs jobs on one of its clusters.

Never knows more than the interface tells. Invariant: what it made was accepted, or the test ends there.
"""

import ssl
from typing import Any

import httpx

from tests.acceptance.clicking import until
from tests.acceptance.service import Service

PLAIN = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For HTTP without TLS: else every call would read the certificates of the whole world first."""
UNFINISHED = {"queued", "starting", "running"}


class Caller:
    """`job` is what every job of `run` has, unless that says otherwise: its cluster first of all."""

    def __init__(self, service: Service, **job: Any) -> None:
        self.service = service
        self._base = f"{service.url}/schedulerService/"
        self._job = job

    def ask(self, method: str, path: str, **request: Any) -> httpx.Response:
        return httpx.request(method, self._base + path, timeout=60, verify=PLAIN, trust_env=False, **request)

    def get(self, path: str, **filters: Any) -> Any:
        answer = self.ask("GET", path, params=filters)
        return answer.json() if "json" in answer.headers["content-type"] else answer.text

    def run(self, name: str, command: str, **fields: Any) -> str:
        """Make a job and run it; the trigger's id."""
        key = {"application": "shop", "jobName": name}
        made = self.ask("PUT", "job", json={**key, "command": command, **self._job, **fields})
        assert made.is_success, made.text
        return str(self.ask("POST", "jobTrigger", json=key).json()["trigger"]["triggerId"])

    def trigger(self, trigger_id: str) -> Any:
        return self.get("jobTrigger", triggerId=trigger_id)["triggers"][0]

    def ended(self, trigger_id: str) -> Any:
        until(lambda: self.trigger(trigger_id)["state"] not in UNFINISHED, "the trigger has ended")
        return self.trigger(trigger_id)

    def prints(self, trigger_id: str, text: str) -> None:
        until(lambda: self.get("jobLog", triggerId=trigger_id) == text, f"it has printed {text!r}")

    def cluster(self) -> Any:
        clusters = self.get("cluster")["cluster"]["clusters"]
        return next(each for each in clusters if each["cluster"] == self._job["cluster"])

    @property
    def node(self) -> str:
        return (self.service.data_dir / "node").read_text().strip()
