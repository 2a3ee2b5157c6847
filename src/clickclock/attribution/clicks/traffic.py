r"""Invalid traffic: what a user agent says of who sent a click, and within which time clicks are a flood.

Never drops a click by itself: a policy says whether what is flagged is left out, and how many clicks are a flood.
Invariant: every pattern means the same to Python and to RE2, by which many agents are judged at once: no look-around,
no back reference.

Known programs are those of the list of `crawler-user-agents`, which is updated with the locked requirements, and our
own few. Libraries for HTTP (curl, python-requests, Java) are no bots: the servers of shops register clicks with them.
What they say is nothing about the visitor, and neither is the address from which they call.

>>> is_bot("Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"), is_bot("CUBOT_X18")
(True, False)
>>> is_visitors("Mozilla/5.0 (Windows NT 10.0; rv:143.0) Gecko/20100101 Firefox/143.0"), is_visitors("curl/8.5.0")
(True, False)
"""

import re
from functools import cache, lru_cache
from hashlib import sha256
from typing import Final, NamedTuple

FLOOD_MS: Final = 10 * 60_000
"""Clicks within this time are counted together."""

_PARTS_MAX: Final = 250
"""Alternatives of one pattern: RE2 needs memory for each, and becomes slow where it has none left."""
_LIBRARIES: Final = "http-library"
"""The list's own word for what we do not take for a bot."""
AMISS: Final = frozenset(
    {"Viber", "WhatsApp", "Sonic", "Sogou", "008\\/", "AP3A\\.240617\\.008", "WordPress\\/", "Zapier", "Make\\/"}
)
"""Patterns of the list that find phones and apps of people, or servers of shops, as well."""

_MESSENGERS: Final = "Viber|WhatsApp|Zalo|Telegram|KAKAOTALK|KakaoTalk|Snapchat|Tumblr|tumblr|Quora|Facebot"
"""Both a previewer and, on a phone, an app with a browser of its own have these names."""
_ON_A_PHONE: Final = "Android|iPhone|iPad|iPod|CFNetwork"

_NAMES: Final = (
    # Those who look at ads before people do, and at pages for them.
    *("adwords-express", "google-?ads", "google-?adwords", "google-safety", "google-site-verification", "duplexweb"),
    *("googleassociationservice", "feedfetcher-google", "google web preview", "google favicon", "googleproducer"),
    *("doubleverify", r"\bias-", "integralads", "admantx", "grapeshot", "peer39", "proximic", r"\bmoat\b", "geoedge"),
    *("storebot-google", "google[ -](sites|search console|page speed|publisher|assess|firebase|cloud|inspection)"),
    *("media ?trust", "riskiq", "confiant", "adbeat", "brandverity", "outbrain", "taboola", "bidtellect"),
    *("yandex(direct|ad)", "google-(amphtml|pagerenderer)", "integral ad science", "pixalate", "white ?ops"),
    # Those who follow the links of mail.
    *("googleimageproxy", "yahoomailproxy", "mimecast", "barracuda", "proofpoint", "ironport", "messagelabs", "cyren"),
    *("symantec", "forcepoint", "fireeye", "fortisandbox", "fortinet", "sophos", "trustwave", "trend ?micro"),
    *("sitesafety", "cisco secure", "microsoft url control", "ms-office", "microsoftpreview"),
    *("microsoft office (existence|protocol) discovery",),
    *("vade ?secure", "mailscanner", "hornetsecurity", "avanan", "check ?point", "phish", "urlscan", "virustotal"),
    *("netskope", "zscaler", "cloudmark", "spamhaus"),
    # Those who show what a link leads to.
    *("facebookexternal", "facebookcatalog", "meta-external", r"\bcortex/", "kakao[a-z]*-(scrap|og)", "line-poker"),
    *("bingpreview", "skypeuripreview", "slack-imgproxy", "vkshare", "embedly", "iframely", "flipboard ?-?proxy"),
    *(r"zoom\.(mac|win)", "cardyb", "mastodon", "akkoma", "pleroma", "misskey", "nuzzel", r"rocket\.chat", "synapse"),
    *("chatgpt-user", "claude-user", "claude-web", "perplexity-user", "cohere-ai", "google-read-aloud", "snapchatads"),
)
"""Programs that the list lacks, or knows in fewer forms, in any case."""

_WORDS: Final = (
    "bots?([^a-z]|$)",
    *("crawl(er|ers|ing)?([^a-z]|$)", "spiders?([^a-z]|$)", "scrap(er|ers|ing|y)([^a-z]|$)", "slurp", "fetcher"),
    *("archiver", "transcoder", "validator", "indexer", "unfurl", "snippet", "oembed", "opengraph", "og-reader"),
    *("(link|url|uri|web|page|site|mail|message|pc|zalo)[ _-]?preview", "preview (service|bot)", "[a-z]-preview"),
    *("(url|link)[ _-]?(defense|protect|scan|check|expand|following|rewrit|control)", "safe ?links?([^a-z]|$)"),
    *("mail ?check", "(image|img|mail)[ _-]?proxy", "headless", "phantomjs", "slimerjs", "puppeteer", "playwright"),
    *("selenium", "webdriver", "cypress/", "lighthouse", "pagespeed", "gtmetrix", "pingdom", "uptime", "statuscake"),
    *("site24x7", "datadog", "newrelic", "dynatrace", "synthetics", "monitoring", "health-?check", "scanner([^a-z]|$)"),
    *("nutch", "netcraft", "megaindex", "cloudflare-?(amp|observatory|diagnostics|always)", "apachebench"),
)
"""What programs call themselves, in any case; `_NO_WORDS` has what else does."""
_PHONE: Final = r"\([^()]*Android[^()]*(\([^()]*\)[^()]*)*\)"
"""What a browser says of the phone that it is on. Makers and builders call theirs what they like."""
_NO_WORDS: Final = rf"(?i){_PHONE}|fossibot|cubot|irobot|talbots?"
_OF_AN_APP: Final = "CFNetwork/|Dalvik/"

_FORMS: Final = r"Mozilla.*compatible;|://|\bwww\.|mailto:|[A-Za-z0-9]@[A-Za-z0-9-]+\.[A-Za-z]"
"""How programs, and only old browsers beside them, present themselves: with an address to turn to."""
_HTTP_LIBRARIES: Final = (
    *("curl", "wget", "python", "aiohttp", "httpx", "go-http", "node", "undici", "axios", "got ", "deno", "bun/"),
    *("java", "apache-http", "okhttp", "reactornetty", "jersey", "unirest", "ahc/", "guzzle", "php", "symfony"),
    *("wordpress", "woocommerce", "magento", "shopify", "ruby", "rest-client", "faraday", r"http\.rb", "httpclient"),
    *("typhoeus", "libwww", "lwp", "mojo", "restsharp", "reqwest", "hackney", "dart/", "postman", "insomnia", "httpie"),
    *("zapier", "n8n", "make/", "akka", "superagent", "salesforce"),
)
_NO_FORMS: Final = rf"(?i)msie|konqueror|kindle|viera|^({'|'.join(_HTTP_LIBRARIES)})"

VISITORS: Final = (
    r"(?i)^mozilla/.*(webkit|gecko|trident|msie|presto|khtml|goanna|chrome|safari|firefox|netfront)|^opera/|dalvik/|cfnetwork/"
    r"|android|iphone|ipad|\b(ios|tvos|watchos|mac os)\b|ucbrowser|fbav|midp|hbbtv"
)
"""What the agents of browsers and of apps on a device say. Where none of it is said, a server may have called."""


class Sign(NamedTuple):
    """One way to know a bot."""

    found: str
    """A pattern that finds something in its user agent, `without` which nothing is looked for."""
    unless: str = ""
    """A pattern that finds something in those of others."""
    without: str = ""


@cache
def signs() -> tuple[Sign, ...]:
    """All of them: who has one is a bot."""
    # Here and not at the top: half a megabyte that only those read who judge agents.
    from crawleruseragents import CRAWLER_USER_AGENTS_DATA  # noqa: PLC0415 (see the line above)

    listed = [
        each["pattern"]
        for each in CRAWLER_USER_AGENTS_DATA
        if _LIBRARIES not in each.get("tags", ()) and each["pattern"] not in AMISS
    ]
    return (
        *(Sign("|".join(listed[at : at + _PARTS_MAX]), without=_PHONE) for at in range(0, len(listed), _PARTS_MAX)),
        Sign(f"(?i){'|'.join(_NAMES)}"),
        Sign(_MESSENGERS, unless=_ON_A_PHONE),
        Sign(f"(?i){'|'.join(_WORDS)}", unless=_OF_AN_APP, without=_NO_WORDS),
        Sign(_FORMS, unless=_NO_FORMS),
    )


@cache
def fingerprint() -> str:
    """Equal as long as all agents are judged alike: it changes with the list."""
    return sha256(repr((signs(), VISITORS)).encode()).hexdigest()


@lru_cache(maxsize=4096)
def is_bot(user_agent: str | None) -> bool:
    """Whether a user agent is that of a known bot; without one, nothing is known."""
    return user_agent is not None and any(
        re.search(sign.found, re.sub(sign.without, "", user_agent) if sign.without else user_agent)
        and not (sign.unless and re.search(sign.unless, user_agent))
        for sign in signs()
    )


def is_visitors(user_agent: str | None) -> bool:
    """Whether a user agent is a browser's or a device's, so that the address beside it is a visitor's, too."""
    return user_agent is not None and re.search(VISITORS, user_agent) is not None
