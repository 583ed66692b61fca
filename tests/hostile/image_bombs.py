"""Images of some bytes that hold all the pixels that the server decodes, or say that they hold more."""

from __future__ import annotations

import io
import struct
from functools import cache

from integration.images import png, some_pixels
from PIL import Image

from hostile.messages import IMAGES, field, model
from hostile.target import Client, Target, main

CLASSIFY = "/longshort.v1.Inference/ClassifyImage"


@cache
def blank(form: str, side: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (side, side)).save(file, form, lossless=True)
    return file.getvalue()


def lying_png() -> bytes:
    """Says that it has 4 gigapixels."""
    return png(some_pixels(1)).replace(png(some_pixels(1))[16:24], struct.pack(">II", 65_535, 65_535), 1)


def many(*files: bytes) -> Client:
    async def client(target: Target) -> None:
        images = b"".join(field(2, field(1, file)) for file in files)
        async with target.by_grpc() as connection:
            while True:
                await connection.begin(target.call_headers(CLASSIFY), model(IMAGES) + images)
                await connection.until(lambda: connection.open < 4)

    return client


def one(file: bytes) -> Client:
    async def client(target: Target) -> None:
        request = target.request(f"/classify?model={IMAGES}", file, "image/webp")
        await target.ask_for_ever(request)

    return client


CLIENTS = {
    "WebP": (2, many(*[blank("WEBP", 3_160)] * 64)),
    "PNG": (2, many(*[blank("PNG", 3_160)] * 64)),
    "lies": (2, many(*[lying_png()] * 64)),
    "WebP by HTTP": (16, one(blank("WEBP", 3_160))),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
