# ruff: noqa: E501 (lines of logs are long, and broken ones are hard to compare)
"""Lines of servers' logs, in each format as servers write it: what of them is a click, and what is passed over."""

import contextlib
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clickclock.attribution.importing.historical import Historical, Unusable
from clickclock.attribution.importing.log_line import LogReader, instant_ms

NEW_YEAR_MS = 1_767_225_600_000
Q = "client_id=c&atag=a%7Cb"
QUERY = Q.encode()
AGENT = b"Mozilla/5.0 (X11; Linux x86_64) Gecko"
PAGE = b"https://shop.example/landing?a=b"
AT = "[01/Jan/2026:01:00:00 +0100]"
OURS = "https://shop.example/?client_id=c&atag=a%7Cb"
TAIL = f'204 0 "{PAGE.decode()}" "{AGENT.decode()}"'
CLOUDFRONT = (
    "#Version: 1.0\n"
    "#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) "
    "cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type\n"
)
IIS = (
    "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-01-01 00:00:00\n#Fields: date "
    "time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status "
    "sc-substatus sc-win32-status time-taken\n"
)


def read(text: str) -> Historical | None:
    """The last line of a log."""
    reader = LogReader()
    *heads, line = text.encode("utf-8", "surrogateescape").splitlines()
    assert all(map(reader.heeds, heads))
    return reader.read(line)


def whole(peer: str = "203.0.113.7", **changed: Any) -> Historical:
    values: dict[str, Any] = {
        "query": QUERY,
        "received_ms": NEW_YEAR_MS,
        "agent": AGENT,
        "referer": PAGE,
        "peer": peer,
    } | changed
    return Historical(**values)


def cloudfront(
    stem: str = "/aclick", query: str = Q, referer: str = PAGE.decode(), agent: str = "", status: str = "204"
) -> str:
    agent = agent or AGENT.decode().replace(" ", "%20")
    values = ["2026-01-01", "00:00:00", "FRA50-C1", "300", "203.0.113.7", "GET", "d1.cloudfront.net", stem, status, referer, agent, query, "-", "Miss"]  # fmt: skip
    return "\t".join(values)


def iis(stem: str = "/aclick", query: str = Q, method: str = "GET") -> str:
    agent = AGENT.decode().replace(" ", "+")
    return f"2026-01-01 00:00:00 10.0.0.5 {method} {stem} {query} 443 - 203.0.113.7 {agent} {PAGE.decode()} 204 0 0 15"


CADDY = {
    "level": "info", "ts": NEW_YEAR_MS / 1000, "logger": "http.log.access.log0", "msg": "handled request",
    "request": {
        "remote_ip": "203.0.113.7", "client_ip": "203.0.113.7", "proto": "HTTP/2.0", "method": "GET", "host": "c.example",
        "uri": f"/aclick?{Q}", "headers": {"User-Agent": [AGENT.decode()], "Referer": [PAGE.decode()]},
    },
    "status": 204, "resp_headers": {"Date": ["Thu, 01 Jan 2026 00:00:00 GMT"], "Server": ["Caddy"]},
}  # fmt: skip
GOOGLE = {
    "httpRequest": {
        "requestMethod": "GET", "requestUrl": f"https://c.example/aclick?{Q}", "status": 204, "latency": "0.1s",
        "userAgent": AGENT.decode(), "referer": PAGE.decode(), "remoteIp": "203.0.113.7", "serverIp": "10.0.0.1",
    },
    "resource": {"type": "http_load_balancer"}, "timestamp": "2026-01-01T00:00:00.000000123Z",
    "receiveTimestamp": "2026-01-01T00:00:01Z",
}  # fmt: skip
NGINX = {
    "time_iso8601": "2026-01-01T01:00:00+01:00", "remote_addr": "203.0.113.7", "request": f"GET /aclick?{Q} HTTP/1.1",
    "status": "204", "time": 0.012, "http_referer": PAGE.decode(), "http_user_agent": AGENT.decode(),
}  # fmt: skip
WRITTEN_OUT = {
    "@timestamp": "2026-01-01T00:00:00Z", "clientip": "203.0.113.7", "request_method": "GET", "uri": "/aclick",
    "request_uri": f"/aclick?{Q}", "args": Q, "status": 204, "user_agent": AGENT.decode(), "referrer": PAGE.decode(),
}  # fmt: skip
TRAEFIK = {
    "ClientHost": "203.0.113.7", "RequestMethod": "GET", "RequestPath": f"/aclick?{Q}", "DownstreamStatus": 204,
    "StartUTC": "2026-01-01T00:00:00.0Z", "request_User-Agent": AGENT.decode(), "request_Referer": PAGE.decode(),
}  # fmt: skip
CLOUDFLARE = {
    "ClientIP": "203.0.113.7", "ClientRequestMethod": "GET", "ClientRequestURI": f"/aclick?{Q}",
    "ClientRequestUserAgent": AGENT.decode(), "ClientRequestReferer": PAGE.decode(), "EdgeResponseStatus": 204,
    "EdgeStartTimestamp": NEW_YEAR_MS * 1_000_000,
}  # fmt: skip
CLOUDFRONT_JSON = {
    "date": "2026-01-01", "time": "00:00:00", "c-ip": "203.0.113.7", "cs-method": "GET", "cs-uri-stem": "/aclick",
    "cs-uri-query": Q, "sc-status": "204", "cs(Referer)": PAGE.decode(), "cs(User-Agent)": AGENT.decode(),
}  # fmt: skip
WAF = {
    "timestamp": NEW_YEAR_MS, "action": "ALLOW",
    "httpRequest": {
        "clientIp": "203.0.113.7", "uri": "/aclick", "args": Q, "httpMethod": "GET",
        "headers": [{"name": "User-Agent", "value": AGENT.decode()}, {"name": "Referer", "value": PAGE.decode()}],
    },
}  # fmt: skip

FORMATS: dict[str, str] = {
    "combined": f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}',
    "with a user who has a blank": f'203.0.113.7 - mr x {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}',
    "vhost_combined": f'c.example:443 203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}',
    "a virtual host that is an address": f'10.0.0.1:80 203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}',
    "combinedio": f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL} 512 204 1234',
    "ingress-nginx": f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/2.0" {TAIL} 412 0.003 [ns-svc-80] [] 10.1.1.1:80 0 0.003 204 abc',
    "behind a prefix": f'203.0.113.7 - - {AT} "GET /collect/v1/AClick/?{Q} HTTP/1.1" {TAIL}',
    "a whole URL": f'203.0.113.7 - - {AT} "GET http://c.example/aclick?{Q} HTTP/1.1" {TAIL}',
    "in a container's log": f'2026-01-01T00:00:07.1Z stdout F 203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}',
    "docker's json-file": json.dumps({"log": f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL}\n', "stream": "stdout", "time": "2026-01-01T00:00:07Z"}),
    "CloudFront": CLOUDFRONT + cloudfront(),
    "CloudFront, its head cut off": cloudfront(),
    "CloudFront, encoded twice": CLOUDFRONT + cloudfront(query=Q.replace("%", "%25"), agent=AGENT.decode().replace(" ", "%2520")),
    "IIS": IIS + iis(),
    "IIS, its head cut off": iis(),
    "W3C with the day in the head": f"#Date: 2026-01-01 00:00:00\n#Fields: time c-ip cs-method cs-uri-stem cs-uri-query cs(User-Agent) cs(Referer)\n00:00:00 203.0.113.7 GET /aclick {Q} {AGENT.decode().replace(' ', '+')} {PAGE.decode()}",
    **{
        name: json.dumps(each)
        for name, each in {
            "Caddy": CADDY, "Google": GOOGLE, "nginx JSON": NGINX, "JSON with all written out": WRITTEN_OUT,
            "Traefik": TRAEFIK, "Cloudflare": CLOUDFLARE, "CloudFront JSON": CLOUDFRONT_JSON, "AWS WAF": WAF,
        }.items()
    },
}  # fmt: skip


@pytest.mark.parametrize("line", FORMATS.values(), ids=FORMATS)
def test_a_click_is_read_from_every_format_with_its_time_agent_page_and_address(line: str) -> None:
    assert read(line) == whole()


@pytest.mark.parametrize(
    ("line", "click"),
    [
        ((f'https 2026-01-01T00:00:00.000000Z app/lb/1 203.0.113.7:46532 10.0.0.66:9000 0.086 0.048 0.037 204 204 0 57 '
         f'"GET https://c.example:443/aclick?{Q} HTTP/1.1" "{AGENT.decode()}" ECDHE TLSv1.2 arn:aws:x "Root=1-58" "c.example" '
         f'"arn:aws:acm" 1 2026-01-01T00:00:00Z "forward" "-" "-" "10.0.0.66:9000" "204" "-" "-" TID_1'), whole(referer=b"")),
        ((f'2026-01-01T00:00:00.000000Z lb 203.0.113.7:2817 10.0.0.1:80 0.00007 0.001 0.00005 204 204 0 57 '
         f'"GET https://c.example:443/aclick?{Q} HTTP/1.1" "{AGENT.decode()}" DHE TLSv1.2'), whole(referer=b"")),
        ((f'[2026-01-01T00:00:00.000Z] "GET /aclick?{Q} HTTP/2" 204 - 154 0 226 100 "203.0.113.7" "{AGENT.decode()}" '
         f'"cc21d9b0" "c.example" "10.0.2.1:80"'), whole("", referer=b"", forwarded=b"203.0.113.7")),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {TAIL} "198.51.100.4, 10.0.0.1"',
         whole(forwarded=b"198.51.100.4, 10.0.0.1")),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" 204 0', whole(agent=b"", referer=b"")),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" 204 0 "-" "-"', whole(agent=b"", referer=b"")),
        ((f'Feb  6 12:14:14 lb haproxy[14389]: 203.0.113.7:33317 [06/Feb/2026:12:14:14.655] web web/s1 10/0/30/69/109 204 '
         f'27 - - ---- 1/1/1/1/0 0/0 {{c.example}} {{}} "GET /aclick?{Q} HTTP/1.1"'),
         whole(received_ms=None, agent=b"", referer=b"")),
        (f'203.0.113.7 - - {AT} "POST /aclick?{Q} HTTP/1.1" {TAIL}', whole()),
        (f'203.0.113.7 - - {AT} "HEAD /aclick?{Q} HTTP/1.1" {TAIL}', whole()),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" 502 0 "-" "x \\"y\\" \\x22z\\xC3\\xBC"',
         whole(agent='x "y" "zü'.encode(), referer=b"")),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q}&x=\\x22\\xC3\\xBC\\\\ HTTP/1.1" 204 0 "-" "-"',
         whole(query=QUERY + '&x="ü\\'.encode(), agent=b"", referer=b"")),
        (f'203.0.113.7 - - {AT} "GET /aclick?{Q}&x=a b HTTP/1.1" 400 0 "-" "-"',
         whole(query=QUERY + b"&x=a b", agent=b"", referer=b"")),
        (f'2026-01-01T00:00:00Z lb "GET https://c.example/ACLICK/?{Q} HTTP/2.0" 204', whole("", agent=b"", referer=b"")),
        (CLOUDFRONT + cloudfront(query="client_id=c&x=50%25"), whole(query=b"client_id=c&x=50%25")),
        (json.dumps({"uri": f"/aclick?{Q}", "status": 204}), Historical(QUERY, None)),
        (json.dumps({"query": Q, "received_at": NEW_YEAR_MS}), Historical(QUERY, NEW_YEAR_MS)),
        (json.dumps({"client_id": "c", "atag": "a|b"}), Historical(b"client_id=c&atag=a|b", None)),
        (f"https://clicks.example/aclick?{Q}#top", Historical(QUERY, None)),
        (f"clicks.example:8081/aclick/?{Q}", Historical(QUERY, None)),
        (f"/aclick?{Q}", Historical(QUERY, None)),
        (f"{Q}\r\n", Historical(QUERY, None)),
        (f"?{Q}", Historical(QUERY, None)),
    ],
)  # fmt: skip
def test_what_a_format_does_not_have_is_left_out(line: str, click: Historical) -> None:
    assert read(line) == click


@pytest.mark.parametrize(
    "line",
    [
        *(f'203.0.113.7 - - {AT} "{made} HTTP/1.1" 200 5 "{OURS}" "x"' for made in (
            "GET /", "GET /clickclock.js", "POST /aclick", "GET /aclick?", f"OPTIONS /aclick?{Q}", f"PUT /aclick?{Q}",
            f"GET /aclick.js?{Q}", f"GET /aclick/more?{Q}", f"GET /login?back=/aclick?{Q}", f"GET /miraclick?{Q}",
            "OPTIONS *", "CONNECT c.example:443",
        )),
        *(f'203.0.113.7 - - {AT} "GET /aclick?{Q} HTTP/1.1" {status} 5 "-" "x"' for status in (401, 403, 405, 407, 451)),
        f'203.0.113.7 - - {AT} "GET /x HTTP/1.1" 200 5 "https://c.example/aclick?{Q}" "x"',
        f'203.0.113.7 - - {AT} "GET /x HTTP/1.1" 200 5 "-" "GET /aclick?{Q} HTTP/1.1"',
        f'203.0.113.7 - GET /aclick?{Q} {AT} "GET /x HTTP/1.1" 200 5 "-" "x"',
        f'203.0.113.7 - - {AT} "\\x16\\x03\\x01" 400 5 "-" "-"',
        f'203.0.113.7 - - {AT} "\\x16\\x03\\x01" 400 5 "-" "GET /aclick?{Q} HTTP/1.1"',
        f'203.0.113.7 - - {AT} "-" 408 0 "-" "-"',
        CLOUDFRONT + cloudfront("/clickclock.js", "-", OURS),
        cloudfront("/clickclock.js", "-", OURS),
        CLOUDFRONT + cloudfront(status="403"),
        IIS + iis("/default.aspx"), IIS + iis(query="-"), IIS + iis(method="OPTIONS"),
        json.dumps(CADDY | {"request": {"method": "GET", "uri": "/clickclock.js", "headers": {"Referer": [OURS]}}}),
        json.dumps(NGINX | {"request": "GET / HTTP/1.1", "http_referer": f"https://c.example/aclick?{Q}"}),
        "https://shop.example/landing?client_id=c&atag=a",
    ],
)  # fmt: skip
def test_a_line_of_another_request_is_passed_over_whatever_it_names(line: str) -> None:
    assert read(line) is None


@pytest.mark.parametrize(
    "line",
    [
        "", "hello", "hello world", "a=b", "ip=203.0.113.7&user=jane", f"{Q} and more", '{"client": ', "{}", "[1]",
        '{"ip": "203.0.113.7", "query_time": 5}', '{"message": "started"}', '{"level":"info","msg":"listening on /aclick?x"}',
        "2026-01-01 00:00:00 ERROR worker: no connection to 203.0.113.7", f"203.0.113.7\t{Q}\tx", "\0" * 50, '"' * 51,
        "Jan  1 00:00:00 host kernel: eth0 203.0.113.7 up", "date,client_id,cli_ubid", "# a comment",
        json.dumps({"msg": "sending", "url": f"https://c.example/aclick?{Q}"}), '{"a":' * 2000, "client_id = c",
    ],
)  # fmt: skip
def test_what_is_no_log_line_and_no_query_is_unreadable_and_nothing_of_it_is_repeated(line: str) -> None:
    with pytest.raises(Unusable) as refused:
        LogReader().read(line.encode())
    assert "203.0.113" not in str(refused.value)


@pytest.mark.parametrize("at", ["[31/Foo/2026:00:00:00 +0000]", "[32/Jan/2026:00:00:00 +0000]", "2026-13-01T00:00:00Z"])
def test_a_click_with_a_time_that_is_none_says_so_and_another_request_is_passed_over(at: str) -> None:
    with pytest.raises(Unusable, match="its time cannot be read"):
        read(f'203.0.113.7 - - {at} "GET /aclick?{Q} HTTP/1.1"')
    assert read(f'203.0.113.7 - - {at} "GET / HTTP/1.1"') is None


@pytest.mark.parametrize(
    ("at", "ms"),
    [
        ("1767225600", NEW_YEAR_MS), ("1767225600.123", NEW_YEAR_MS + 123), (NEW_YEAR_MS, NEW_YEAR_MS),
        (1767225600.5, NEW_YEAR_MS + 500), (f"{NEW_YEAR_MS}000", NEW_YEAR_MS), (NEW_YEAR_MS * 1_000_000, NEW_YEAR_MS),
        ("2026-01-01T00:00:00.123456789Z", NEW_YEAR_MS + 123), ("2026-01-01 00:00:00,5+00:00", NEW_YEAR_MS + 500),
        ("2026-01-01T00:00:00", None), (None, None), (True, None),
    ],
)  # fmt: skip
def test_a_log_may_write_its_time_in_any_unit_and_without_a_zone_it_says_nothing(at: object, ms: int | None) -> None:
    assert instant_ms(at) == ms


@given(
    st.binary(max_size=200), st.sampled_from([b"", b"{", b"203.0.113.7 - - [", b'"GET /aclick?', CLOUDFRONT.encode()])
)
def test_no_bytes_break_the_reader(rest: bytes, start: bytes) -> None:
    reader = LogReader()
    for line in (start + rest).split(b"\n"):
        with contextlib.suppress(Unusable):
            if not reader.heeds(line):
                reader.read(line)


@pytest.mark.parametrize(
    "unit", ['"', '\\"', "[", "[ ", '"GET ', "GET /", '"\\" ', " ", "\t", "{", '{"a":', "%25", "a=&", "1.2.3.4,"]
)
def test_the_longest_line_comes_to_an_end_whatever_it_is_made_of(unit: str) -> None:
    lines: Sequence[bytes] = [
        (start + unit * (2**20 // len(unit))).encode() for start in ("", "x ", '"', f"1.2.3.4 - - {AT} ")
    ]
    for line in lines:
        with contextlib.suppress(
            Unusable
        ):  # what looks at all bytes from each of them takes hours, and is taken for hung
            LogReader().read(line)
