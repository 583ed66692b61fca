"""Makes files/: one small image of every kind that is decoded, and expected.safetensors with its pixels; files/broken/:
what no program writes.

    PYTHONPATH=tests python tests/models/images/make_files.py

needs Pillow 13 and numpy. The pixels are what Pillow makes of the file: Image.open, ImageOps.exif_transpose,
convert("RGB"). Only 16-bit samples are by formula, (sample + 128) // 257, where Pillow drops the lower byte.
"""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import orientation_samples
from numpy.typing import NDArray
from PIL import Image, ImageOps
from reference import safetensors_file

FOLDER = Path(__file__).resolve().parent / "files"
HEIGHT, WIDTH = 9, 13
ORIENTATION = 0x112

Array8 = NDArray[np.uint8]
Array16 = NDArray[np.uint16]


def main() -> None:
    """Writes all files again."""
    FOLDER.mkdir(exist_ok=True)
    for old in whole_files():
        old.unlink()
    colours, alpha = made_up_pixels()
    write_jpegs(colours, alpha)
    write_pngs(colours, alpha)
    write_webps(colours, alpha)
    for name, file in orientation_samples.samples(Image.fromarray(colours)):
        (FOLDER / f"orientation_{name}").write_bytes(file)
    expected = {path.name: by_pillow(path) for path in whole_files()}
    expected |= write_wide(colours)
    safetensors_file.write(FOLDER.parent / "expected.safetensors", dict(sorted(expected.items())))
    write_large()
    write_broken()


def whole_files() -> list[Path]:
    return [path for path in FOLDER.iterdir() if path.is_file()]


def made_up_pixels() -> tuple[Array8, Array8]:
    """Colours [height, width, 3] and an alpha [height, width, 1] with every kind of value."""
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    colours = np.stack([x * 19, y * 27, (x + y) * 12], axis=-1).astype(np.uint8)
    return colours, ((x * 23 + y * 5) % 256).astype(np.uint8)[..., None]


def by_pillow(path: Path) -> Array8:
    with Image.open(path) as image:
        return np.asarray(ImageOps.exif_transpose(image).convert("RGB"))


def with_alpha(colours: Array8, alpha: Array8) -> Image.Image:
    return Image.fromarray(np.concatenate([colours, alpha], axis=-1), "RGBA")


def exif(orientation: int) -> Image.Exif:
    notes = Image.Exif()
    notes[ORIENTATION] = orientation
    return notes


def inks(colours: Array8, alpha: Array8) -> Image.Image:
    return Image.frombytes("CMYK", (WIDTH, HEIGHT), np.concatenate([colours, alpha // 2], axis=-1).tobytes())


def write_jpegs(colours: Array8, alpha: Array8) -> None:
    image = Image.fromarray(colours)
    for subsampling in ("4:4:4", "4:2:2", "4:2:0"):
        image.save(FOLDER / f"colours_{subsampling.replace(':', '')}.jpg", subsampling=subsampling)
    image.save(FOLDER / "progressive.jpg", progressive=True)
    image.convert("L").save(FOLDER / "grey.jpg")
    inks(colours, alpha).save(FOLDER / "cmyk.jpg", quality=95)
    for orientation in range(1, 9):
        image.save(FOLDER / f"orientation_{orientation}.jpg", exif=exif(orientation))


def write_pngs(colours: Array8, alpha: Array8) -> None:
    image = Image.fromarray(colours)
    image.save(FOLDER / "colours.png")
    image.convert("L").save(FOLDER / "grey.png")
    image.convert("1").save(FOLDER / "one_bit.png")
    with_alpha(colours, alpha).save(FOLDER / "alpha.png")
    with_alpha(colours, alpha).convert("LA").save(FOLDER / "grey_alpha.png")
    for bits in (1, 2, 4, 8):
        image.quantize(2**bits).save(FOLDER / f"palette_{bits}.png", bits=bits)
    image.quantize(16).save(FOLDER / "palette_alpha.png", transparency=bytes(range(0, 256, 16)))
    image.save(FOLDER / "orientation_6.png", exif=exif(6))
    write_interlaced_png(colours)
    image.save(FOLDER / "animated.png", save_all=True, append_images=[ImageOps.invert(image)])


def write_webps(colours: Array8, alpha: Array8) -> None:
    image = Image.fromarray(colours)
    image.save(FOLDER / "lossy.webp")
    image.save(FOLDER / "lossless.webp", lossless=True)
    with_alpha(colours, alpha).save(FOLDER / "alpha.webp")
    image.save(FOLDER / "orientation_5.webp", exif=exif(5), lossless=True)
    image.save(FOLDER / "animated.webp", save_all=True, append_images=[ImageOps.invert(image)], lossless=True)
    moving = [with_alpha(colours, alpha), with_alpha(colours[::-1], alpha)]
    moving[0].save(FOLDER / "animated_alpha.webp", save_all=True, append_images=moving[1:])


def write_large() -> None:
    """Images of 4.8 million pixels, for decoding to a fraction; the JPEG lies on its side."""
    folder = FOLDER / "large"
    folder.mkdir(exist_ok=True)
    noise = np.random.default_rng(1).integers(0, 256, (12, 10, 3), dtype=np.uint8)
    image = Image.fromarray(noise).resize((2001, 2403), Image.Resampling.BICUBIC)
    image.save(folder / "turned.jpg", quality=40, optimize=True, exif=exif(6))
    image.save(folder / "upright.webp", quality=30)


def write_broken() -> None:
    folder = FOLDER / "broken"
    folder.mkdir(exist_ok=True)
    write_animation_with_large_frame(folder)
    # 8 x 8 pixels, and behind them 48 MiB of zeros: 48 times a mebibyte in a block that stands by itself.
    rows = b"".join(b"\0" + bytes(range(8 * y, 8 * y + 8)) for y in range(8))
    packer = zlib.compressobj(9)
    pixels = packer.compress(rows) + packer.flush(zlib.Z_FULL_FLUSH)
    mebibyte = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    (folder / "inflates_on.png").write_bytes(png_of([(b"IHDR", header), (b"IDAT", pixels + 48 * mebibyte)]))


def write_animation_with_large_frame(folder: Path) -> None:
    """An animation of 10 x 10 pixels whose frame holds an image of 16383 x 16383."""
    lossless = io.BytesIO()
    Image.new("RGB", (8, 8), (10, 200, 30)).save(lossless, "WEBP", lossless=True)
    image = bytearray(lossless.getvalue()[12:])
    # Pixels of one colour take no bits, so only the two sizes minus 1, of 14 bits each, determine the image.
    bits = struct.unpack_from("<I", image, 9)[0] & ~0xFFFFFFF
    struct.pack_into("<I", image, 9, bits | 16382 << 14 | 16382)
    nine = struct.pack("<I", 9)[:3]
    frame = bytes(6) + nine + nine + bytes(4) + bytes(image)
    body = webp_chunk(b"VP8X", b"\2\0\0\0" + nine + nine) + webp_chunk(b"ANIM", bytes(6)) + webp_chunk(b"ANMF", frame)
    (folder / "animated_with_large_frame.webp").write_bytes(webp_chunk(b"RIFF", b"WEBP" + body))


def webp_chunk(kind: bytes, content: bytes) -> bytes:
    """REQUIRES: an even number of bytes."""
    return kind + struct.pack("<I", len(content)) + content


def write_wide(colours: Array8) -> dict[str, Array8]:
    """Images of 16 bits a sample, and their pixels by formula."""
    wide = colours.astype(np.uint16) * 257 + np.arange(HEIGHT * WIDTH * 3, dtype=np.uint16).reshape(colours.shape) * 3
    eight = ((wide.astype(np.int64) + 128) // 257).clip(max=255).astype(np.uint8)
    grey = eight[..., :1].repeat(3, axis=-1)
    write_wide_png("wide_colours.png", wide, 2)
    write_wide_png("wide_grey.png", wide[..., :1], 0)
    return {"wide_colours.png": eight, "wide_grey.png": grey}


def write_wide_png(name: str, pixels: Array16, colour_type: int) -> None:
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 16, colour_type, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    (FOLDER / name).write_bytes(png_of([(b"IHDR", header), (b"IDAT", zlib.compress(rows))]))


def write_interlaced_png(colours: Array8) -> None:
    """Seven passes over the pixels, each with all of them that its grid has."""
    grids = [(0, 8, 0, 8), (0, 8, 4, 8), (4, 8, 0, 4), (0, 4, 2, 4), (2, 4, 0, 2), (0, 2, 1, 2), (1, 2, 0, 1)]
    rows = b""
    for top, down, left, right in grids:
        rows += b"".join(b"\0" + row.tobytes() for row in colours[top::down, left::right])
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 1)
    (FOLDER / "interlaced.png").write_bytes(png_of([(b"IHDR", header), (b"IDAT", zlib.compress(rows))]))


def png_of(chunks: list[tuple[bytes, bytes]]) -> bytes:
    """A file of these chunks and the last one."""
    whole = [
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in [*chunks, (b"IEND", b"")]
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(whole)


if __name__ == "__main__":
    main()
