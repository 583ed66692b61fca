"""No attack: clients that send as much as the documentation lets them, and wait for each answer."""

from __future__ import annotations

import asyncio
import io

from integration.images import png, some_pixels
from PIL import Image

from hostile.messages import IMAGES, TEXTS, some_json
from hostile.target import Client, Target, main

PIXELS = 1_660  # squared, of noise: a file of 8.3 MB


def photo() -> bytes:
    """25 megapixels."""
    file = io.BytesIO()
    Image.fromarray(some_pixels(2, 500, 500)).resize((5_000, 5_000)).save(file, "JPEG")
    return file.getvalue()


def use(what: str, path: str, kind: str, body: bytes, times: int = 1) -> Client:
    """Waits a second after a refusal, as the server asks it to."""

    async def client(target: Target) -> None:
        async with target.by_http() as connection:
            for _ in range(times):
                await connection.send(target.request(path, body, kind))
                status = await connection.answer()
                target.seen[f"{what} {status}"] += 1
                await asyncio.sleep(1 if status in (429, 503) else 0)

    return client


CLASSIFY = f"/classify?model={IMAGES}"
# As many texts as a call takes.
SENTENCES = some_json(model=TEXTS, input=["Das Wetter ist heute schön, und morgen wird es regnen. " * 4] * 64)

CLIENTS = {
    "bodies": (4, use("bodies", CLASSIFY, "image/png", png(some_pixels(1, PIXELS, PIXELS)))),
    "texts": (2, use("texts", "/v1/embeddings", "application/json", SENTENCES, 2_048 // 64)),
    "photos": (2, use("photos", CLASSIFY, "image/jpeg", photo())),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
