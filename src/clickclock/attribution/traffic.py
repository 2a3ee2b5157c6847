"""Invalid traffic: what is known of bots by their user agents, and within which time clicks are a flood.

Never drops a click by itself: an account's policy says whether what is flagged is left out.
Invariant: `BOT_PATTERN` means the same to Python's `re`, RE2 (DuckDB) and Java (Spark): it has alternatives, classes of
ASCII letters and no flags, since what they take for one letter in two cases is not the same.

What fetches pages without a person is named here: search engines, previews of links, monitors, browsers that are driven.
Libraries for HTTP (curl, okhttp, python-requests) are not: shops' servers and apps register clicks with them.

>>> bool(search(BOT_PATTERN, "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"))
True
"""

from re import escape, search
from typing import Final

FLOOD_MS: Final = 10 * 60_000
"""A flood is counted within this time; how many clicks are one is the policy's."""

BOTS: Final = (
    *("crawl", "spider", "slurp", "scrap", "fetcher", "archiver", "transcoder", "validator", "indexer", "sniffer"),
    *("facebookexternalhit", "facebookcatalog", "meta-external", "mediapartners-google", "apis-google"),
    *("googleother", "google-inspectiontool", "google-read-aloud", "google-safety", "google web preview"),
    *("bingpreview", "yahoo link preview", "skypeuripreview", "whatsapp/", "vkshare", "embedly", "iframely"),
    *("ia_archiver", "duckduckgo-favicons", "yandex.com/bots", "baiduspider", "megaindex", "netcraft", "nutch"),
    *("headless", "phantomjs", "slimerjs", "puppeteer", "playwright", "selenium", "webdriver", "cypress/", "electron/"),
    *("lighthouse", "pagespeed", "gtmetrix", "pingdom", "uptime", "statuscake", "site24x7", "datadog", "newrelic"),
    *("gptbot", "chatgpt-user", "claude-web", "claude-user", "perplexity-user", "ccbot", "cohere-ai", "diffbot"),
)
"""Words of user agents of programs, beside `bot` itself."""
