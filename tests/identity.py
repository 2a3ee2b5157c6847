"""A real identity provider on a port: `oidc-provider-mock` of PyPI, a program with a page on which one signs in.

It is the smallest that a registry serves: npm's `oidc-provider` needs Node and a program around it. Codes, clients and
PKCE it checks by Authlib. Never reaches further than this machine.

>>> with provider([{"sub": "anna", "groups": ["ops"]}]) as issuer: ...   # doctest: +SKIP
"""

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

DEADLINE_S = 60
_LISTENS = re.compile(r"http://127\.0\.0\.1:\d+")


@contextlib.contextmanager
def provider(users: Sequence[dict[str, Any]], *options: str) -> Iterator[str]:
    """It listens at the address that this gives, and knows these people by their claims."""
    program = Path(sys.executable).with_name("oidc-provider-mock")
    command = [str(program), "--port", "0", "--require-nonce", "true", *options]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as running:
        try:
            assert running.stderr is not None
            issuer = next(found[0] for line in running.stderr if (found := _LISTENS.search(line)))
            Thread(target=running.stderr.read, daemon=True).start()  # else it waits for a reader of its log
            for user in users:
                httpx.put(f"{issuer}/users/{user['sub']}", json=user).raise_for_status()
            yield issuer
        finally:
            running.kill()


async def consent(url: str, subject: str) -> str:
    """Sign in on the provider's page as somebody; the address to which it then sends the browser."""
    async with httpx.AsyncClient(timeout=DEADLINE_S) as browser:
        assert (await browser.get(url)).status_code == 200
        answer = await browser.post(url, data={"sub": subject})
        return answer.headers["location"]


def said(url: str) -> dict[str, str]:
    """The parameters of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
