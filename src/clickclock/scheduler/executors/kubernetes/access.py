"""How a cluster is reached and how we say who we are: a kubeconfig, or the service account of the pod that we run in.

Never keeps a secret on disk longer than TLS needs to read it, and never logs one. Invariants: what can be renewed is
read again: a token's file each minute, a certificate's when it was refused, an exec plugin when its credential is about
to end or was refused; what a kubeconfig asks for and we do not know is a fault, not passed over.

>>> await Access.open(KubernetesOptions(), environment)   # doctest: +SKIP
"""

import asyncio
import base64
import json
import os
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.foundation.redaction import redacted
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
TOKEN_READ_EVERY_S = 60.0
"""A token's file is replaced long before the token ends; Kubernetes' own clients look once a minute, too."""
EXEC_S_MAX = 30.0
RENEW_S = 30.0
"""A credential is renewed so long before it ends."""
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
NOT_SUPPORTED = ("auth-provider", "as", "as-groups", "as-uid", "as-user-extra")
PROXIES = ("http", "https")


@dataclass(frozen=True)
class Access:
    """One way into one cluster."""

    server: str
    namespace: str
    tls: ssl.SSLContext
    authentication: "Authentication"
    proxy: str | None = None
    tls_server_name: str | None = None

    @staticmethod
    async def open(options: KubernetesOptions, environment: Mapping[str, str]) -> "Access":
        """Read what the options name; raises `ExecutorUnreachable` with a sentence if that does not do."""
        try:
            if options.kubeconfig is not None:
                return await _from_kubeconfig(options.kubeconfig.expanduser(), options, environment)
            return _from_service_account(options, environment)
        except (OSError, KeyError, TypeError, ValueError, ssl.SSLError) as error:
            source = options.kubeconfig or SERVICE_ACCOUNT
            raise ExecutorUnreachable(
                f"The access to the cluster cannot be read from {source}: {redacted(str(error))}."
            ) from error


@dataclass
class Credential:
    """What says who we are: a header, or a certificate within TLS, until a time (monotonic seconds)."""

    header: str | None = None
    certificate: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    until_s: float = float("inf")


class Authentication(httpx.Auth):
    """Puts the credential on each request, and renews it once when the cluster refuses it."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._credential: Credential | None = None
        self._turn = asyncio.Lock()

    async def credential(self) -> Credential:
        """A new credential."""
        return Credential()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """See `httpx.Auth`."""
        used = await self._current(refused=None)
        self._put(used, request)
        response = yield request
        if response.status_code == httpx.codes.UNAUTHORIZED:
            again = await self._current(refused=used)
            self._put(again, request)
            if again.certificate is not None:
                # This connection has shown the old certificate for good; the next one shows the new.
                request.headers["Connection"] = "close"
            yield request

    async def _current(self, refused: Credential | None) -> Credential:
        async with self._turn:
            held = self._credential
            if held is None or held is refused or held.until_s <= time.monotonic():
                held = self._credential = await self.credential()
                if held.certificate is not None and held.key is not None:
                    _load(self._tls, held.certificate, held.key)
            return held

    @staticmethod
    def _put(credential: Credential, request: httpx.Request) -> None:
        if credential.header is not None:
            request.headers["Authorization"] = credential.header


class HeaderAuthentication(Authentication):
    """A header that stays: a token, or a name with its password."""

    def __init__(self, tls: ssl.SSLContext, header: str) -> None:
        super().__init__(tls)
        self._header = header

    async def credential(self) -> Credential:
        return Credential(self._header)


class CertificateAuthentication(Authentication):
    """A certificate within TLS, from files that somebody may renew, or from the kubeconfig itself."""

    def __init__(self, tls: ssl.SSLContext, user: Mapping[str, Any], folder: Path) -> None:
        super().__init__(tls)
        self._user, self._folder = user, folder
        _load(tls, *self._read())

    async def credential(self) -> Credential:
        try:
            return Credential(None, *self._read())
        except (OSError, ValueError) as error:
            raise ExecutorUnreachable(f"The client certificate cannot be read: {error}.") from error

    def _read(self) -> tuple[str, str]:
        certificate = _material(self._user, "client-certificate", self._folder) or ""
        return certificate, _material(self._user, "client-key", self._folder) or certificate


class FileAuthentication(Authentication):
    """A token in a file that somebody else renews: the kubelet does for service accounts."""

    def __init__(self, tls: ssl.SSLContext, file: Path) -> None:
        super().__init__(tls)
        self._file = file

    async def credential(self) -> Credential:
        try:
            token = self._file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ExecutorUnreachable(f"The token in {self._file} cannot be read: {error.strerror}.") from error
        return Credential(f"Bearer {token}", until_s=time.monotonic() + TOKEN_READ_EVERY_S)


class ExecAuthentication(Authentication):
    """A program that gives credentials, by the `client.authentication.k8s.io` protocol."""

    def __init__(self, tls: ssl.SSLContext, said: Mapping[str, Any], folder: Path, environment: Mapping[str, str],
                 cluster: Mapping[str, Any]) -> None:  # fmt: skip
        super().__init__(tls)
        self._version: str = said["apiVersion"]
        if self._version not in EXEC_VERSIONS:
            raise ValueError(f"its exec plugin speaks {self._version}; known are {', '.join(EXEC_VERSIONS)}")
        if said.get("interactiveMode") == "Always":
            raise ValueError("its exec plugin wants a terminal, and a service has none")
        command: str = said["command"]
        # As kubectl reads it: a name with a slash is relative to the kubeconfig's folder, a bare one is on the PATH.
        self._command = [str(folder / command) if "/" in command else command, *(said.get("args") or [])]
        info: dict[str, Any] = {"apiVersion": self._version, "kind": "ExecCredential", "spec": {"interactive": False}}
        if said.get("provideClusterInfo"):
            info["spec"]["cluster"] = {name: value for name, value in cluster.items() if name != "extensions"}
        given = {each["name"]: each["value"] for each in said.get("env") or []}
        self._environment = {**environment, **given, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    async def credential(self) -> Credential:
        output = await self._run()
        try:
            answer = json.loads(output)
            status = answer["status"]
            if answer.get("apiVersion") != self._version:
                raise ValueError(f"it answers in {answer.get('apiVersion')}, not {self._version}")
            header = f"Bearer {status['token']}" if status.get("token") else None
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            if header is None and certificate is None:
                raise ValueError("it gives neither a token nor a certificate")
            return Credential(header, certificate, key, _until_s(status.get("expirationTimestamp")))
        except (KeyError, TypeError, ValueError) as error:
            raise ExecutorUnreachable(f"The exec plugin {self._command[0]} gave no credential: {error}.") from error

    async def _run(self) -> bytes:
        try:
            plugin = await asyncio.create_subprocess_exec(
                *self._command,
                env=self._environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise ExecutorUnreachable(f"The exec plugin {self._command[0]} cannot be run: {error}.") from error
        try:
            async with asyncio.timeout(EXEC_S_MAX):
                output, errors = await plugin.communicate()
        except TimeoutError as error:
            plugin.kill()
            await plugin.wait()
            raise ExecutorUnreachable(f"The exec plugin {self._command[0]} took over {EXEC_S_MAX:.0f} s.") from error
        if plugin.returncode:
            said = errors.decode(errors="replace").strip()[-500:]
            raise ExecutorUnreachable(f"The exec plugin {self._command[0]} failed ({plugin.returncode}): {said}")
        return output


def _until_s(expires: str | None) -> float:
    if expires is None:
        return float("inf")
    left_s = datetime.fromisoformat(expires).timestamp() - time.time()  # noqa: TID251 - another's clock set that time
    return time.monotonic() + max(0.0, left_s - RENEW_S)


def _from_service_account(options: KubernetesOptions, environment: Mapping[str, str]) -> Access:
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ValueError("we do not run in a pod (no KUBERNETES_SERVICE_HOST); give `kubeconfig`")
    tls = _trusting((SERVICE_ACCOUNT / "ca.crt").read_text(encoding="utf-8"))
    server = f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"
    namespace = options.namespace or (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    return Access(server, namespace, tls, FileAuthentication(tls, SERVICE_ACCOUNT / "token"))


async def _from_kubeconfig(file: Path, options: KubernetesOptions, environment: Mapping[str, str]) -> Access:
    config = await asyncio.to_thread(_parsed, file)
    name = options.context or config.get("current-context")
    context = _named(config, "contexts", "context", name)
    cluster = _named(config, "clusters", "cluster", context["cluster"])
    user = _named(config, "users", "user", context["user"]) if context.get("user") else {}
    if strange := [each for each in NOT_SUPPORTED if each in user]:
        raise ValueError(f"its user has {', '.join(strange)}, which is not supported here")
    proxy = cluster.get("proxy-url")
    if proxy and urlsplit(proxy).scheme not in PROXIES:
        raise ValueError(f"its cluster has the proxy-url {proxy}; known are those of {' and '.join(PROXIES)}")
    folder = file.parent
    tls = _trusting(_material(cluster, "certificate-authority", folder))
    if cluster.get("insecure-skip-tls-verify"):
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    return Access(
        server=str(cluster["server"]).rstrip("/"),
        namespace=options.namespace or context.get("namespace") or "default",
        tls=tls,
        authentication=_authentication(user, tls, folder, environment, cluster),
        proxy=proxy or None,
        tls_server_name=cluster.get("tls-server-name"),
    )


def _parsed(file: Path) -> dict[str, Any]:
    import yaml  # noqa: PLC0415 (only who has a kubeconfig needs it)

    try:
        config = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"it is not YAML: {error}") from error
    if not isinstance(config, dict):
        raise ValueError("it is no kubeconfig")
    return config


def _named(config: Mapping[str, Any], kind: str, within: str, name: str | None) -> dict[str, Any]:
    entries: list[Mapping[str, Any]] = config.get(kind) or []
    for entry in entries:
        if entry["name"] == name:
            return dict(entry[within])
    known = ", ".join(str(entry["name"]) for entry in entries) or "none"
    raise ValueError(f"it has no entry {name!r} among its {kind}; known are {known}")


def _trusting(authorities: str | None) -> ssl.SSLContext:
    """TLS that trusts those authorities, or the system's, and reads certificates as kubectl does.

    Clusters make certificates that newer Pythons find too sloppy (no key identifier of the authority), and name
    authorities that others have signed.
    """
    tls = ssl.create_default_context(cadata=authorities)
    tls.verify_flags = tls.verify_flags & ~ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    return tls


def _material(table: Mapping[str, Any], name: str, folder: Path) -> str | None:
    """PEM text: `name-data` in Base64, which wins, or the file `name`, relative to the kubeconfig's folder."""
    if data := table.get(f"{name}-data"):
        return base64.b64decode(data).decode()
    return (folder / table[name]).read_text(encoding="utf-8") if table.get(name) else None


def _load(tls: ssl.SSLContext, certificate: str, key: str) -> None:
    """Give TLS a client certificate. It takes files only, so it gets one that nobody else can read, for a moment."""
    file, path = tempfile.mkstemp(prefix="clickclock-")
    try:
        with os.fdopen(file, "w") as pem:
            pem.write(f"{certificate}\n{key}\n")
        tls.load_cert_chain(path)
    finally:
        Path(path).unlink()


def _authentication(
    user: Mapping[str, Any],
    tls: ssl.SSLContext,
    folder: Path,
    environment: Mapping[str, str],
    cluster: Mapping[str, Any],
) -> Authentication:
    has_certificate = user.get("client-certificate") or user.get("client-certificate-data")
    certificate = CertificateAuthentication(tls, user, folder) if has_certificate else None
    if user.get("exec"):
        return ExecAuthentication(tls, user["exec"], folder, environment, cluster)
    if user.get("tokenFile"):  # it wins over `token`, as with kubectl
        return FileAuthentication(tls, folder / user["tokenFile"])
    if user.get("token"):
        return HeaderAuthentication(tls, f"Bearer {user['token']}")
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password', '')}".encode()
        return HeaderAuthentication(tls, f"Basic {base64.b64encode(pair).decode()}")
    return certificate or Authentication(tls)
