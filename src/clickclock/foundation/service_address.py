"""Addresses that are called: a scheme, a host, and no secret in the clear.

Never repeats an address, for it may be a secret.

>>> service_address("https://hooks.example.com/T0/B0")
'https://hooks.example.com/T0/B0'
"""

from urllib.parse import urlsplit

from clickclock.foundation.reach import is_loopback


def hook_address(url: str) -> str:
    """An address to which a webhook is posted. Raises `ValueError`; it is never repeated, for it may be a secret."""
    try:
        parts = urlsplit(url)
        names_somebody = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none, or half an IPv6 address
        names_somebody = False
    if not (names_somebody and url.isascii() and url.isprintable() and " " not in url):
        raise ValueError("give a url that begins with https:// or http:// and names a host")
    return url


def service_address(url: str) -> str:
    """An address of a service; without TLS only on this machine. Raises `ValueError`, and never repeats it."""
    parts = urlsplit(hook_address(url))
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ValueError("give a url that begins with https://: a secret does not travel in the clear")
    return url
