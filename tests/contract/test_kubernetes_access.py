"""How the executor of Kubernetes gets into a cluster: kubeconfigs as kubectl writes them, tokens, exec plugins, TLS."""

import asyncio
import base64
import contextlib
import json
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from clickclock.foundation.errors import ExecutorUnreachable
from clickclock.scheduler.executors.kubernetes.access import Access
from clickclock.scheduler.executors.kubernetes.api import Api, Unreachable
from clickclock.scheduler.executors.kubernetes.options import KubernetesOptions

PLUGIN = """#!/bin/sh
echo x >> "$COUNT"
printf '%s' "$KUBERNETES_EXEC_INFO" > "$INFO"
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
 "status": {"token": "token-'$(wc -l < "$COUNT" | tr -d ' ')'"}}'
"""


def kubeconfig(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> KubernetesOptions:
    """Options that name a kubeconfig with one user of one cluster."""
    file = folder / "kubeconfig"
    said = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u", "namespace": "batch"}}],
        "clusters": [{"name": "k", "cluster": {"server": "https://127.0.0.1:6443/", **(cluster or {})}}],
        "users": [{"name": "u", "user": user}],
    }
    file.write_text(yaml.safe_dump(said))
    return KubernetesOptions(kubeconfig=file)


async def opened(options: KubernetesOptions, **environment: str) -> Access:
    return await Access.open(options, {"PATH": "/usr/bin:/bin", **environment})


async def sent(access: Access, refused: int = 0) -> list[str]:
    """The `Authorization` headers of one request, of which the first `refused` are answered 401."""
    seen: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization", ""))
        return httpx.Response(401 if len(seen) <= refused else 200)

    async with httpx.AsyncClient(auth=access.authentication, transport=httpx.MockTransport(answer)) as client:
        await client.get(access.server)
    return seen


async def test_a_kubeconfig_says_server_namespace_and_token(tmp_path: Path) -> None:
    access = await opened(kubeconfig(tmp_path, {"token": "secret"}))
    assert (access.server, access.namespace) == ("https://127.0.0.1:6443", "batch")
    assert await sent(access) == ["Bearer secret"]


async def test_a_tokens_file_is_read_again_when_its_token_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("old\n")
    access = await opened(kubeconfig(tmp_path, {"tokenFile": str(file), "token": "never"}))
    assert await sent(access) == ["Bearer old"]
    file.write_text("new\n")
    assert await sent(access, refused=1) == ["Bearer old", "Bearer new"]


async def test_a_name_and_password_are_sent_as_such(tmp_path: Path) -> None:
    access = await opened(kubeconfig(tmp_path, {"username": "a", "password": "b"}))
    assert await sent(access) == ["Basic " + base64.b64encode(b"a:b").decode()]


def plugin(folder: Path, script: str = PLUGIN, **more: Any) -> dict[str, Any]:
    (folder / "plugin").write_text(script)
    (folder / "plugin").chmod(0o700)
    variables = [{"name": name, "value": str(folder / name.lower())} for name in ("COUNT", "INFO")]
    said = {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "env": variables, **more}
    return {"exec": {"interactiveMode": "Never", **said}}


async def test_an_exec_plugin_is_asked_once_and_again_when_its_token_is_refused(tmp_path: Path) -> None:
    access = await opened(kubeconfig(tmp_path, plugin(tmp_path, provideClusterInfo=True)))
    assert await sent(access) == ["Bearer token-1"]
    assert await sent(access) == ["Bearer token-1"]
    assert await sent(access, refused=1) == ["Bearer token-1", "Bearer token-2"]
    info = json.loads((tmp_path / "info").read_text())
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://127.0.0.1:6443/"}}


async def test_an_exec_plugins_token_is_renewed_before_it_ends(tmp_path: Path) -> None:
    ends = PLUGIN.replace('"status": {', '"status": {"expirationTimestamp": "2020-01-01T00:00:00Z", ')
    access = await opened(kubeconfig(tmp_path, plugin(tmp_path, ends)))
    assert await sent(access) + await sent(access) == ["Bearer token-1", "Bearer token-2"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\necho log in first >&2; exit 3\n", "log in first"),
        ("#!/bin/sh\necho hello\n", "gave no credential"),
        ('#!/bin/sh\necho \'{"apiVersion": "x", "status": {}}\'\n', "gave no credential"),
    ],
)
async def test_an_exec_plugin_that_fails_is_told_with_its_words(tmp_path: Path, script: str, said: str) -> None:
    access = await opened(kubeconfig(tmp_path, plugin(tmp_path, script)))
    with pytest.raises(ExecutorUnreachable, match=said):
        await sent(access)


@pytest.mark.parametrize(
    ("user", "said"),
    [
        ({"auth-provider": {"name": "oidc"}}, "auth-provider, which is not supported"),
        ({"exec": {"apiVersion": "client.authentication.k8s.io/v1alpha1", "command": "x"}}, "v1alpha1"),
        (
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "x", "interactiveMode": "Always"}},
            "term",
        ),
        ({"client-certificate": "none.pem"}, "none.pem"),
    ],
)
async def test_what_we_cannot_do_is_refused_with_a_sentence(tmp_path: Path, user: dict[str, Any], said: str) -> None:
    with pytest.raises(ExecutorUnreachable, match=said):
        await opened(kubeconfig(tmp_path, user))


async def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    options = kubeconfig(tmp_path, {}).model_copy(update={"context": "prod"})
    with pytest.raises(ExecutorUnreachable, match="no entry 'prod' among its contexts; known are c"):
        await opened(options)


async def test_outside_of_a_pod_a_kubeconfig_is_asked_for() -> None:
    with pytest.raises(ExecutorUnreachable, match="give `kubeconfig`"):
        await opened(KubernetesOptions())


@pytest.mark.needs("openssl")
async def test_a_client_certificate_and_the_clusters_own_authority_are_used_and_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", "/CN=kube", "-keyout", str(tmp_path / "key"), "-out", str(tmp_path / "crt")]
    await asyncio.to_thread(subprocess.run, [*made, *names], check=True, capture_output=True)
    data = {name: base64.b64encode((tmp_path / name).read_bytes()).decode() for name in ("key", "crt")}
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    user = {"client-certificate-data": data["crt"], "client-key-data": data["key"]}
    access = await opened(kubeconfig(tmp_path, user, {"certificate-authority": "crt", "tls-server-name": "kube"}))
    assert "kube" in str(access.tls.get_ca_certs())
    assert (access.tls.verify_mode, access.tls_server_name) == (ssl.CERT_REQUIRED, "kube")
    assert list(temporary.iterdir()) == []


@pytest.mark.needs("openssl")
async def test_a_client_certificate_that_is_replaced_in_its_file_is_used_when_the_old_one_is_refused(
    tmp_path: Path,
) -> None:
    for name in ("server", "old", "new"):
        _certificate(tmp_path, name)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    context.verify_mode = ssl.CERT_REQUIRED
    for name in ("old", "new"):
        context.load_verify_locations(tmp_path / f"{name}.crt")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """As an API server does: who shows an expired certificate is let in, and is nobody."""
        shown = dict(pair[0] for pair in writer.get_extra_info("peercert")["subject"])["commonName"]
        status, body = (b"200 OK", b'{"items": []}') if shown == "new" else (b"401 Unauthorized", b"{}")
        while request := await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
            await writer.drain()
            if b"connection: close" in request.lower():
                break
        writer.close()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            await answer(reader, writer)

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
    for kind in ("crt", "key"):
        (tmp_path / f"ours.{kind}").write_bytes((tmp_path / f"old.{kind}").read_bytes())
    user = {"client-certificate": "ours.crt", "client-key": "ours.key"}
    port = server.sockets[0].getsockname()[1]
    cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": "server.crt"}
    api = Api(await opened(kubeconfig(tmp_path, user, cluster)))
    with pytest.raises(Unreachable, match="401"):
        await api.nodes()
    for kind in ("crt", "key"):
        (tmp_path / f"ours.{kind}").write_bytes((tmp_path / f"new.{kind}").read_bytes())
    with contextlib.suppress(Unreachable):
        await api.nodes()
    assert await api.nodes() == []
    await api.close()
    server.close()


def _certificate(folder: Path, name: str) -> None:
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1"]
    names = ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt")]
    subprocess.run([*made, *names, *files], check=True, capture_output=True)


async def test_certificates_are_read_as_kubectl_reads_them(tmp_path: Path) -> None:
    access = await opened(kubeconfig(tmp_path, {"token": "x"}))
    assert not access.tls.verify_flags & ssl.VERIFY_X509_STRICT
    assert access.tls.verify_flags & ssl.VERIFY_X509_PARTIAL_CHAIN


async def test_a_proxy_that_we_cannot_speak_to_is_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ExecutorUnreachable, match=r"proxy-url socks5:.*; known are those of http and https"):
        await opened(kubeconfig(tmp_path, {"token": "x"}, {"proxy-url": "socks5://127.0.0.1:1080"}))
    access = await opened(kubeconfig(tmp_path, {"token": "x"}, {"proxy-url": "http://127.0.0.1:3128"}))
    assert access.proxy == "http://127.0.0.1:3128"
