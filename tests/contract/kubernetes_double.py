"""A double of a Kubernetes cluster: its API over HTTP on a port, its Job controller and its kubelets, in a thread.

Pods run as processes of this machine. It follows the documented API (batch/v1 Jobs, pods, their logs, watches with
resource versions, bookmarks and 410, optimistic deletes, RBAC, `$(VAR)` expansion), and what containerd and the Job
controller are documented to report. Faults are put in by attributes and methods; time is never faked.
Invariants: every object that it is sent is checked against the schema of Kubernetes 1.36; whoever may not do a thing
by `deploy/kubernetes/rbac.yaml` is answered 403, and what was asked is remembered in `asked`.

>>> with KubernetesDouble(folder) as double:   # doctest: +SKIP
...     double.kubeconfig
"""

import asyncio
import copy
import gzip
import itertools
import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import kubernetes_validate
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from referencing import Registry, Resource

from tests.contract.kubernetes_kubelet import Kubelet, Object

T = TypeVar("T")
NAMESPACE = "clickclock"
ROOT = Path(__file__).parents[2]
TOKEN = "token-of-clickclock"
VERSION = "1.36"
KINDS = {"jobs": "Job", "pods": "Pod", "secrets": "Secret", "events": "Event", "nodes": "Node",
         "namespaces": "Namespace"}  # fmt: skip
_PATH = re.compile(
    r"/(?:api/v1|apis/batch/v1)(?:/namespaces/(?P<namespace>[^/]+))?/(?P<kind>\w+)(?:/(?P<name>[^/]+)(?P<log>/log)?)?"
)
_REASONS = {400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 409: "AlreadyExists",
            410: "Expired", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 504: "Timeout"}  # fmt: skip


def stamp(moment: datetime | None = None) -> str:
    """A time as Kubernetes writes it: in whole seconds."""
    return (moment or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Answered(Exception):
    """A request ends here, with this status."""

    def __init__(self, code: int, message: str, *, retry_after_s: int | None = None, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason or _REASONS.get(code, "Unknown")
        self.retry_after_s = retry_after_s

    @property
    def status(self) -> Object:
        """The `v1.Status` that says it."""
        details = {} if self.retry_after_s is None else {"details": {"retryAfterSeconds": self.retry_after_s}}
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": str(self),
                "reason": self.reason, "code": self.code, **details}  # fmt: skip


class KubernetesDouble:
    """One cluster. `with` starts it and ends it, and all pods with it."""

    def __init__(self, folder: Path, nodes: tuple[str, ...] = ("node-1", "node-2")) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.kubeconfig = folder / "kubeconfig"
        self.things: dict[str, dict[str, Object]] = {kind: {} for kind in KINDS}
        self.asked: set[tuple[str, str]] = set()
        """(verb, resource) of every request."""
        self.requests: list[tuple[str, str]] = []
        """(method, path) of every request."""
        self.allowed = _rules(ROOT / "deploy/kubernetes/rbac.yaml")
        # Faults, each until it is taken away.
        self.answers: list[Answered | str | Callable[[], None]] = []
        """What the next changing requests get instead: a status; or `lost`, or what is to be called then: done, but
        never answered."""
        self.image_faults: dict[str, tuple[str, str]] = {}
        self.unschedulable: str | None = None
        self.quota: str | None = None
        self.refused_image: str | None = None
        self.refusal = Answered(500, "an admission webhook failed")
        """What Jobs with that image get."""
        self.refused_secrets: list[Answered] = []
        """What the next Secrets get."""
        self.log_is_late = False
        """Whether the next request for a log finds the container not there yet, as a node that is behind says."""
        self.pods_are_late: asyncio.Event | None = None
        """Until when an answer of which pods there are is under way; it tells of the moment it was asked for."""
        self.watches_are_late: asyncio.Event | None = None
        """Until when watches tell nothing: a pod may be removed before anybody heard of its end."""
        self.excuses: list[bytes] = []
        """What the nodes say after a status of 200 in the next logs: instead of the output, or after what there is."""
        self.token = TOKEN
        self._log: list[tuple[int, str, str, Object]] = []
        self._compacted = 0
        self._pages: dict[str, tuple[int, list[Object]]] = {}
        self._versions = itertools.count(1000)
        self._uids = itertools.count(1)
        self._names = itertools.count(1)
        self._nodes = itertools.cycle(nodes)
        self._watching: set[asyncio.Event] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._watches: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="kubernetes double", daemon=True)
        self.kubelet = Kubelet(self, folder / "pods")
        self.put_namespace()
        for name in nodes:
            self.things["nodes"][name] = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}

    def __enter__(self) -> Self:
        self._thread.start()
        self.answer()
        self.kubeconfig.write_text(
            yaml.safe_dump({
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "double",
                "contexts": [
                    {"name": "double", "context": {"cluster": "double", "user": "clickclock", "namespace": NAMESPACE}}
                ],
                "clusters": [{"name": "double", "cluster": {"server": f"http://127.0.0.1:{self._port}"}}],
                "users": [{"name": "clickclock", "user": {"token": TOKEN}}],
            })
        )  # fmt: skip
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.fall_silent()
        self.call(self.kubelet.close)
        asyncio.run_coroutine_threadsafe(self._end_tasks(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end_tasks(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # For tests, from their thread.

    def call(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something on the double's own thread."""
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(work(*arguments))
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result(10)

    def answer(self) -> None:
        """Listen, on the port that it had before."""
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)

    def fall_silent(self) -> None:
        """Refuse connections and break those that are there; pods run on."""
        asyncio.run_coroutine_threadsafe(self._hang_up(), self._loop).result(10)

    def close_watches(self) -> None:
        """End all watches, as a proxy in between does."""

        def work() -> None:
            for writer in self._watches:
                writer.transport.abort()
            self._tell()

        self.call(work)

    def compact(self) -> None:
        """Forget what happened so far: a watch from before gets 410."""

        def work() -> None:
            self._compacted = self._version()
            self._log.clear()

        self.call(work)

    def restore(self) -> None:
        """Begin to count anew, as a store does that was restored from a copy: versions from before are too large."""

        def work() -> None:
            self._versions = itertools.count(1)
            for thing in itertools.chain.from_iterable(each.values() for each in self.things.values()):
                thing["metadata"]["resourceVersion"] = str(next(self._versions))
            self._compacted = next(self._versions)
            self._log.clear()

        self.call(work)

    def jobs(self) -> list[Object]:
        """The Jobs there are."""
        return self.call(lambda: copy.deepcopy(list(self.things["jobs"].values())))

    def pods(self) -> list[Object]:
        """The pods there are."""
        return self.call(lambda: copy.deepcopy(list(self.things["pods"].values())))

    def rotate_log(self, pod: str) -> None:
        """Begin a new file for a container's output, as a kubelet does at 10 MiB: who asks anew is shown no other."""
        self.call(self.kubelet.rotate, pod)

    def disrupt(self, pod: str, reason: str, message: str = "said the cluster") -> None:
        """Take a pod away, as the cluster does: the condition first, then the end."""
        self.call(self.kubelet.disrupt, pod, reason, message)

    def delete_pod(self, pod: str) -> None:
        """What `kubectl delete pod` does."""
        self.call(self.delete, "pods", pod, 1)

    def delete_job(self, job: str) -> None:
        """What `kubectl delete job` does."""
        self.call(self._remove_job, job)

    def lose_node_of(self, pod: str) -> None:
        """The node vanishes: its kubelet says nothing any more, and the taint manager deletes its pods."""
        self.call(self.kubelet.lose, pod)

    # The store, on the double's thread.

    def put(self, kind: str, thing: Object, event: str = "MODIFIED") -> None:
        """Keep an object, and tell those who watch."""
        thing["metadata"]["resourceVersion"] = str(next(self._versions))
        name = thing["metadata"]["name"]
        if event == "DELETED":
            self.things[kind].pop(name, None)
        else:
            self.things[kind][name] = thing
        self._log.append((int(thing["metadata"]["resourceVersion"]), event, kind, copy.deepcopy(thing)))
        self._tell()

    def _tell(self) -> None:
        for waiting in self._watching:
            waiting.set()

    def delete(self, kind: str, name: str, grace_s: int | None) -> None:
        """DELETE, with a grace period where it is a pod."""
        if kind == "pods":
            self.kubelet.delete(self.things["pods"][name], grace_s)
        else:
            self._remove_job(name)

    def _remove_job(self, name: str) -> None:
        job = self.things["jobs"][name]
        self.put("jobs", job, "DELETED")
        for kind in ("pods", "secrets"):
            for thing in list(self.things[kind].values()):
                if any(
                    owner["uid"] == job["metadata"]["uid"] for owner in thing["metadata"].get("ownerReferences", ())
                ):
                    if kind == "pods":
                        self.kubelet.delete(thing, None)
                    else:
                        self.put(kind, thing, "DELETED")

    def put_namespace(self, phase: str = "Active") -> None:
        """Make the namespace."""
        meta = {"name": NAMESPACE}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": meta, "status": {"phase": phase}}
        self.things["namespaces"][NAMESPACE] = namespace

    def warn(self, kind: str, name: str, reason: str, message: str) -> None:
        """An event."""
        event = {"apiVersion": "v1", "kind": "Event", "type": "Warning", "reason": reason, "message": message,
                 "metadata": {"name": f"{name}.{next(self._names):x}", "namespace": NAMESPACE},
                 "involvedObject": {"kind": kind, "name": name}, "lastTimestamp": stamp()}  # fmt: skip
        self.put("events", event, "ADDED")

    # The Job controller.

    def sync_job(self, name: str) -> None:
        """One round of the Job controller, as documented for backoffLimit 0 with a policy for disruptions."""
        job = self.things["jobs"].get(name)
        if job is None:
            return
        before = copy.deepcopy(job["status"])
        uid = job["metadata"]["uid"]
        pods = [p for p in self.things["pods"].values() if p["metadata"]["ownerReferences"][0]["uid"] == uid]
        over = {"Complete", "Failed"} & {each["type"] for each in job["status"].get("conditions", ())}
        if not over:
            self._advance_job(job, pods)
        if job["status"] != before:
            self.put("jobs", job)

    def _advance_job(self, job: Object, pods: list[Object]) -> None:
        status, seen = job["status"], {each["metadata"]["uid"]: each for each in pods}
        history: dict[str, Object] = self.kubelet.history.setdefault(job["metadata"]["uid"], {})
        history.update(seen)
        live = [each for each in pods if each["status"]["phase"] not in {"Succeeded", "Failed"}]
        ending = [each for each in live if each["metadata"].get("deletionTimestamp")]
        failed = [each for each in history.values() if each["status"]["phase"] == "Failed"]
        failed += [
            each
            for uid, each in history.items()
            if uid not in seen and each["status"]["phase"] in {"Pending", "Running"}
        ]
        status["active"], status["terminating"] = len(live) - len(ending), len(ending)
        met = {each["type"] for each in status.get("conditions", ())}
        if any(each["status"]["phase"] == "Succeeded" for each in history.values()):
            reason, words = "CompletionsReached", "Reached expected number of succeeded pods"
            self._conclude(job, "SuccessCriteriaMet", "Complete", reason, words, is_over=not live)
        elif job["spec"].get("suspend") and "FailureTarget" not in met:
            for pod in live:
                if pod not in ending:
                    self._loop.call_soon(self.kubelet.delete, pod, None)
            self._meet(job, "Suspended", "JobSuspended", "Job suspended")
        elif failed:
            taken = next((each for each in failed if _is_disrupted(each)), None)
            reason, words = "BackoffLimitExceeded", "Job has reached the specified backoff limit"
            if taken is not None:
                name = taken["metadata"]["name"]
                reason = "PodFailurePolicy"
                words = f"Pod {NAMESPACE}/{name} has condition DisruptionTarget matching FailJob rule at index 0"
            self._conclude(job, "FailureTarget", "Failed", reason, words, is_over=not live)
        elif self._is_past_its_deadline(job):
            words = "Job was active longer than specified deadline"
            self._conclude(job, "FailureTarget", "Failed", "DeadlineExceeded", words, is_over=not live)
        elif not history and job["spec"]["parallelism"]:
            self._start_pod(job)

    def _is_past_its_deadline(self, job: Object) -> bool:
        """By a time that begins anew when it is resumed; it is looked at again then."""
        name, status, deadline_s = job["metadata"]["name"], job["status"], job["spec"].get("activeDeadlineSeconds")
        if "startTime" not in status or any(each["type"] == "Suspended" for each in status.get("conditions", ())):
            status["conditions"] = [each for each in status.get("conditions", ()) if each["type"] != "Suspended"]
            status["startTime"] = stamp()
        if deadline_s is None:
            return False
        left_s: float = deadline_s - (datetime.now(UTC) - datetime.fromisoformat(status["startTime"])).total_seconds()
        if left_s > 0:
            self._loop.call_later(left_s, self.sync_job, name)
        return left_s <= 0

    def _conclude(self, job: Object, first: str, then: str, reason: str, words: str, *, is_over: bool) -> None:
        """What it comes to is told first, and that it has come to it in a later round, when no pod is left to end."""
        if any(each["type"] == first for each in job["status"].get("conditions", ())):
            if is_over:
                self._meet(job, then, reason, words)
        else:
            self._meet(job, first, reason, words)
            self._loop.call_soon(self.sync_job, job["metadata"]["name"])

    def _start_pod(self, job: Object) -> None:
        if self.quota is not None:
            self.warn("Job", job["metadata"]["name"], "FailedCreate", f"Error creating: {self.quota}")
            return
        status = job["status"]
        name, uid = job["metadata"]["name"], job["metadata"]["uid"]
        template = copy.deepcopy(job["spec"]["template"])
        template["metadata"].setdefault("labels", {})["batch.kubernetes.io/job-name"] = name
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid, "controller": True}
        pod = {"apiVersion": "v1", "kind": "Pod", "spec": template["spec"], "status": {"phase": "Pending"},
               "metadata": {**template["metadata"], **self._born(f"{name}-{next(self._names):05x}"),
                            "ownerReferences": [owner]}}  # fmt: skip
        self.put("pods", pod, "ADDED")
        status["active"] = 1
        self.kubelet.place(pod)

    def has_job_of(self, pod: Object) -> bool:
        """Whether a pod's Job is there, and with it the finalizer that keeps the pod until its end is known."""
        return pod["metadata"]["ownerReferences"][0]["name"] in self.things["jobs"]

    def next_node(self) -> str:
        """Where the scheduler puts the next pod."""
        return next(self._nodes)

    def _born(self, name: str) -> Object:
        return {"name": name, "namespace": NAMESPACE, "uid": f"uid-{next(self._uids)}", "creationTimestamp": stamp()}

    def _meet(self, job: Object, kind: str, reason: str, message: str) -> None:
        conditions = job["status"].setdefault("conditions", [])
        if all(each["type"] != kind for each in conditions):
            conditions.append({"type": kind, "status": "True", "reason": reason, "message": message,
                               "lastTransitionTime": stamp(), "lastProbeTime": stamp()})  # fmt: skip

    # HTTP.

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    async def _hang_up(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()
        self._tell()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._answer_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            self._watches.discard(writer)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        try:
            lost = self._fault(method)
            answer = await self._route(method, target, headers, json.loads(body) if body else {}, writer)
            if lost is not None:
                if callable(lost):
                    lost()
                writer.transport.abort()
                return False
            if answer is None:
                return False
            _send(writer, 200 if method != "POST" else 201, answer, packed="gzip" in headers.get("accept-encoding", ""))
        except Answered as answered:
            after = {} if answered.retry_after_s is None else {"Retry-After": str(answered.retry_after_s)}
            _send(writer, answered.code, answered.status, after)
        await writer.drain()
        return True

    def _fault(self, method: str) -> str | Callable[[], None] | None:
        if method == "GET" or not self.answers:
            return None
        fault = self.answers.pop(0)
        if isinstance(fault, Answered):
            raise fault
        return fault

    async def _route(
        self, method: str, target: str, headers: Mapping[str, str], body: Object, writer: asyncio.StreamWriter
    ) -> Object | None:
        parts = urlsplit(target)
        self.requests.append((method, parts.path))
        query = dict(parse_qsl(parts.query))
        match = _PATH.fullmatch(parts.path)
        if match is None:
            raise Answered(404, "the server could not find the requested resource")
        kind, name, namespace = match["kind"], match["name"] or "", match["namespace"]
        self._authorize(method, kind + ("/log" if match["log"] else ""), name, namespace, query, headers)
        if match["log"]:
            await self._send_log(name, query, writer)
            return None
        if name and method != "POST" and name not in self.things[kind]:
            raise Answered(404, f'{kind} "{name}" not found')
        if query.get("watch") == "true":
            await self._send_events(kind, query, writer)
            return None
        match method:
            case "GET" if name:
                return copy.deepcopy(self.things[kind][name])
            case "GET":
                found = self._listed(kind, query, names_only="as=PartialObjectMetadataList" in headers["accept"])
                if kind == "pods" and self.pods_are_late is not None:
                    found = copy.deepcopy(found)
                    await self.pods_are_late.wait()
                return found
            case "POST":
                return self.create(kind, body, is_strict=query.get("fieldValidation") == "Strict")
            case "PATCH":
                assert headers["content-type"] == "application/merge-patch+json"
                return self._patch(kind, name, body)
            case _:
                return self._delete(kind, name, body)

    def _authorize(
        self,
        method: str,
        resource: str,
        name: str,
        namespace: str | None,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> None:
        if headers.get("authorization") != f"Bearer {self.token}":
            raise Answered(401, "Unauthorized")
        reading = "watch" if query.get("watch") == "true" else "get" if name else "list"
        verb = {"GET": reading, "POST": "create", "PATCH": "patch", "DELETE": "delete"}[method]
        self.asked.add((verb, resource))
        here = resource == "nodes" or (name if resource == "namespaces" else namespace) == NAMESPACE
        if (verb, resource) not in self.allowed or not here:
            group = f' in API group "{"batch" if resource == "jobs" else ""}"'
            message = f'User "clickclock" cannot {verb} resource "{resource}"{group} in the namespace "{namespace}"'
            raise Answered(403, f"{resource} is forbidden: {message}")

    def create(self, kind: str, thing: Object, *, is_strict: bool = False) -> Object:
        """POST. Fields that nobody knows are left out, unless it is to be strict."""
        if (unknown := _prune(thing)) and is_strict:
            said = ", ".join(f'unknown field "{each}"' for each in unknown)
            raise Answered(400, f'{KINDS[kind]} in version "v1" cannot be handled: strict decoding error: {said}')
        name = thing["metadata"]["name"]
        if name in self.things[kind]:
            raise Answered(409, f'{kind} "{name}" already exists')
        _check(thing)
        if kind == "jobs" and thing["spec"]["template"]["spec"]["containers"][0]["image"] == self.refused_image:
            raise self.refusal
        if kind == "secrets" and self.refused_secrets:
            raise self.refused_secrets.pop(0)
        thing["metadata"] |= self._born(name) | {"generation": 1}
        if kind == "jobs":
            thing["status"] = {}
        self.put(kind, thing, "ADDED")
        if kind == "jobs":
            self._loop.call_soon(self.sync_job, name)
        return copy.deepcopy(thing)

    def _patch(self, kind: str, name: str, change: Object) -> Object:
        old = self.things[kind][name]
        changed: Object = _merged(copy.deepcopy(old), change)
        _check(changed)
        changed["metadata"]["generation"] += changed["spec"] != old["spec"]
        self.put(kind, changed)
        self._loop.call_soon(self.sync_job, name)
        return copy.deepcopy(changed)

    def _delete(self, kind: str, name: str, options: Object) -> Object:
        _check(options)
        thing = self.things[kind][name]
        if options["preconditions"]["uid"] != thing["metadata"]["uid"]:
            raise Answered(409, "the UID in the precondition does not match the UID in record", reason="Conflict")
        self.delete(kind, name, options.get("gracePeriodSeconds"))
        return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def _listed(self, kind: str, query: Mapping[str, str], *, names_only: bool) -> Object:
        """A page; those that follow are of the same moment, and have its version."""
        if token := query.get("continue"):
            version, left = self._pages[token]
        else:
            found = [each for each in self.things[kind].values() if _selected(each, query)]
            version, left = self._version(), copy.deepcopy(found)
        limit = int(query.get("limit") or len(left) or 1)
        page, left = left[:limit], left[limit:]
        rest = {}
        if left:
            rest["continue"] = uuid.uuid4().hex
            self._pages[rest["continue"]] = version, left
        return {"kind": f"{KINDS[kind]}List", "apiVersion": "v1",
                "items": [{"metadata": each["metadata"]} if names_only else each for each in page],
                "metadata": {"resourceVersion": str(version), **rest}}  # fmt: skip

    def _version(self) -> int:
        return self._log[-1][0] if self._log else self._compacted

    async def _send_events(self, kind: str, query: Mapping[str, str], writer: asyncio.StreamWriter) -> None:
        at = int(query["resourceVersion"])  # one that is not reached yet is waited for, without a word
        _begin(writer)
        if at < self._compacted:
            fault = Answered(410, f"too old resource version: {at} ({self._compacted})")
            _chunk(writer, json.dumps({"type": "ERROR", "object": fault.status}).encode() + b"\n")
            _chunk(writer, b"")
            return
        news = asyncio.Event()
        self._watching.add(news)
        self._watches.add(writer)
        try:
            while not writer.transport.is_closing():
                news.clear()
                if self.watches_are_late is not None:
                    await self.watches_are_late.wait()
                fresh = [each for each in self._log if each[0] > at]
                for version, event, changed, thing in fresh:
                    at = version
                    if changed == kind and _selected(thing, query):
                        _halves(writer, json.dumps({"type": event, "object": thing}).encode() + b"\n")
                if fresh:
                    mark = {"kind": KINDS[kind], "metadata": {"resourceVersion": str(at)}}
                    _chunk(writer, json.dumps({"type": "BOOKMARK", "object": mark}).encode() + b"\n")
                await writer.drain()
                await news.wait()
        finally:
            self._watching.discard(news)

    async def _send_log(self, name: str, query: Mapping[str, str], writer: asyncio.StreamWriter) -> None:
        if self.excuses:
            await self._excuse(name, self.excuses.pop(0), writer)
            return
        if name not in self.things["pods"]:
            raise Answered(404, f'pods "{name}" not found')
        late, self.log_is_late = self.log_is_late, False
        if late or not self.kubelet.has_log(name):
            raise Answered(
                400, f'container "{query["container"]}" in pod "{name}" is waiting to start: ContainerCreating'
            )
        _begin(writer, "text/plain")
        async for piece in self.kubelet.read_log(name, follow=query.get("follow") == "true"):
            _chunk(writer, piece)
            await writer.drain()
        _chunk(writer, b"")
        await writer.drain()

    async def _excuse(self, name: str, words: bytes, writer: asyncio.StreamWriter) -> None:
        """A node that cannot read an output, or not on, after it has begun to answer."""
        _begin(writer, "text/plain")
        if not words.startswith(b"unable"):
            async for piece in self.kubelet.read_log(name, follow=False):
                _chunk(writer, piece)
        _halves(writer, words)
        _chunk(writer, b"")
        await writer.drain()


def _is_disrupted(pod: Object) -> bool:
    return any(each["type"] == "DisruptionTarget" for each in pod["status"].get("conditions", ()))


def _rules(file: Path) -> set[tuple[str, str]]:
    """What the manifest allows: (verb, resource)."""
    things: Iterator[Object] = yaml.safe_load_all(file.read_text(encoding="utf-8"))
    rules = [rule for thing in things for rule in thing.get("rules", ())]
    return {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def _prune(thing: Object) -> list[str]:
    """Leave out what Kubernetes' own schema does not know; returns it."""
    unknown = []
    for error in _schema(thing["apiVersion"], thing["kind"]).iter_errors(thing):
        if error.validator == "additionalProperties":
            for name in error.instance.keys() - error.schema["properties"].keys():
                del error.instance[name]
                unknown.append(f"{error.json_path.removeprefix('$.')}.{name}")
    return unknown


def _check(thing: Object) -> None:
    """Refuse what Kubernetes' own schema does not allow, and in changes what it does not know, too."""
    if thing["kind"] == "DeleteOptions":
        assert thing.keys() <= {"apiVersion", "kind", "preconditions", "gracePeriodSeconds", "propagationPolicy"}
        return
    error = next(_schema(thing["apiVersion"], thing["kind"]).iter_errors(thing), None)
    if error is not None:
        raise Answered(422, f"{thing['kind']} is invalid: {error.json_path}: {error.message}")


@cache
def _schema(version: str, kind: str) -> Draft202012Validator:
    """The schema of one kind, strict: what it does not name is an error."""
    folder = Path(kubernetes_validate.__file__).parent / f"kubernetes-json-schema/v{VERSION}.0-local-strict"
    registry = Registry()
    for name in (f"{kind.lower()}-{version.replace('/', '-')}.json", "_definitions.json"):
        registry = Resource.from_contents(json.loads((folder / name).read_text(encoding="utf-8"))) @ registry
    contents = json.loads((folder / f"{kind.lower()}-{version.replace('/', '-')}.json").read_text(encoding="utf-8"))
    return Draft202012Validator(contents, registry=registry)


def _merged(thing: Any, change: Any) -> Any:
    """RFC 7396."""
    if not isinstance(change, dict):
        return change
    thing = thing if isinstance(thing, dict) else {}
    for key, value in change.items():
        if value is None:
            thing.pop(key, None)
        else:
            thing[key] = _merged(thing.get(key), value)
    return thing


def _selected(thing: Object, query: Mapping[str, str]) -> bool:
    labels = thing["metadata"].get("labels", {})
    for pair in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = pair.partition("=")
        if labels.get(key) != value:
            return False
    for pair in filter(None, query.get("fieldSelector", "").split(",")):
        path, _, value = pair.partition("=")
        found: Any = thing
        for part in path.split("."):
            found = found.get(part, {})
        if found != value:
            return False
    return True


def _send(
    writer: asyncio.StreamWriter,
    code: int,
    answer: Object,
    headers: Mapping[str, str] | None = None,
    *,
    packed: bool = False,
) -> None:
    body = json.dumps(answer).encode()
    headers = dict(headers or {})
    if packed and "items" in answer:
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    lines = [f"HTTP/1.1 {code} X", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)


def _begin(writer: asyncio.StreamWriter, media: str = "application/json") -> None:
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())


def _chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")


def _halves(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A line in two chunks: where one ends says nothing."""
    middle = len(data) // 2
    _chunk(writer, data[:middle])
    _chunk(writer, data[middle:])
