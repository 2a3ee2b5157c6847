"""What only another replica has, asked of it on behalf of a caller: the output of attempts that it keeps.

Never asks on behalf of a replica that asks already, so that no question goes round. Invariants: the caller's own
credentials go with the question, and the other replica judges them; an answer that breaks off breaks off here, and can
be resumed.

>>> RELAYED
'clickclock-relayed-by'
"""

from collections.abc import AsyncIterator, Mapping
from ipaddress import ip_address
from typing import TYPE_CHECKING

from starlette.responses import Response, StreamingResponse

from clickclock.scheduler.engine import Engine
from clickclock.scheduler.errors import OutputElsewhere

if TYPE_CHECKING:
    import httpx

RELAYED = "clickclock-relayed-by"
"""The header that says that a replica asks."""
CONNECT_S_MAX, SILENCE_S_MAX = 3.0, 60.0
"""A stream says something every 15 s."""
_OK, _NOT_FOUND = 200, 404
_ASKED_WITH = ("authorization", "cookie", "last-event-id", "x-request-id")
_ANSWERED_WITH = ("content-type", "cache-control", "x-accel-buffering", "x-next-offset", "x-log-complete")


async def keeper(engine: Engine, headers: Mapping[str, str], trigger_id: str, attempt: int) -> str | None:
    """The other node whose replica keeps an attempt's output; None if it is here, nowhere, or not to be asked for."""
    if engine.store.kind == "sqlite" or RELAYED in headers:
        return None
    node = await engine.store.replicas.keeper(trigger_id, attempt)
    return None if node == engine.node else node


async def ask(engine: Engine, node: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Response:
    """What the replica of that node answers to a GET. Raises `OutputElsewhere` if it is not there to answer."""
    peer = await engine.store.replicas.at(node, engine.clock.now())
    if peer is None or peer.url is None:
        raise OutputElsewhere(f"The output is kept on {node}, which does not serve now; ask again when it is back.")
    import httpx  # noqa: PLC0415 (only replicas ask each other)

    trust, name = engine.peer_trust()
    client = httpx.AsyncClient(verify=trust, timeout=httpx.Timeout(SILENCE_S_MAX, connect=CONNECT_S_MAX))
    told = {name: headers[name] for name in _ASKED_WITH if name in headers}
    request = client.build_request(
        "GET", peer.url.rstrip("/") + path, params=dict(query), headers=told | {RELAYED: engine.replica_id}
    )
    if name is not None and _is_number(request.url.host):
        request.extensions["sni_hostname"] = name  # replicas share a certificate, which has names and no addresses
    try:
        answer = await client.send(request, stream=True)
        if answer.status_code == _NOT_FOUND:
            return Response(await answer.aread(), _NOT_FOUND, media_type="application/json")
        if answer.status_code != _OK:
            raise OutputElsewhere(f"The output is kept on {node}, which answers {answer.status_code} at {peer.url}.")
        chosen = {name: answer.headers[name] for name in _ANSWERED_WITH if name in answer.headers}
        relayed = StreamingResponse(_pieces(client, answer), headers=chosen)
        client = None  # type: ignore[assignment]  # closed when all is sent
    except httpx.HTTPError as error:
        raise OutputElsewhere(
            f"The output is kept on {node}, which does not answer at {peer.url}; ask again when it does."
        ) from error
    finally:
        if client is not None:
            await client.aclose()
    return relayed


def _is_number(host: str) -> bool:
    """Whether a host is an address: a certificate has a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _pieces(client: "httpx.AsyncClient", answer: "httpx.Response") -> AsyncIterator[bytes]:
    import httpx  # noqa: PLC0415 (loaded long since)

    try:
        async for piece in answer.aiter_raw():
            yield piece
    except httpx.HTTPError:
        return  # the caller sees where it ends: the length is wrong, or the stream has no end
    finally:
        await answer.aclose()
        await client.aclose()
