"""Makes files/: one small image of every kind that is decoded, and expected.safetensors with its pixels;
files/broken/: what no program writes; and damaged_tiffs.txt: what Pillow does with damaged TIFFs.

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
from numpy.typing import NDArray
from PIL import Image, ImageOps
from reference import safetensors_file

FOLDER = Path(__file__).resolve().parent / "files"
HEIGHT, WIDTH = 9, 13
ORIENTATION = 0x112

Array8 = NDArray[np.uint8]
Array16 = NDArray[np.uint16]


def main() -> None:
    """Writes all files anew."""
    FOLDER.mkdir(exist_ok=True)
    for old in whole_files():
        old.unlink()
    colours, alpha = made_up_pixels()
    write_jpegs(colours, alpha)
    write_pngs(colours, alpha)
    write_webps(colours, alpha)
    write_bmps(colours, alpha)
    write_tiffs(colours, alpha)
    expected = {path.name: by_pillow(path) for path in whole_files()}
    expected |= write_wide(colours)
    safetensors_file.write(FOLDER.parent / "expected.safetensors", dict(sorted(expected.items())))
    write_broken()
    write_damaged_tiffs()


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
    write_strips_that_share_bytes(folder)


def write_strips_that_share_bytes(folder: Path) -> None:
    """1 x 4096 pixels, each a strip of its own, and all strips the same 25,002 bytes: they inflate to nothing."""
    height = 4096
    strip = b"\x78\x01" + b"\0\0\0\xff\xff" * 5000
    tables = b"".join(struct.pack("<I", value) * height for value in (8, len(strip)))
    offsets = 8 + len(strip)
    tags = [(256, 1, 1), (257, 1, height), (258, 1, 8), (259, 1, 8), (262, 1, 1), (273, height, offsets)]
    tags += [(277, 1, 1), (278, 1, 1), (279, height, offsets + 4 * height)]
    entries = b"".join(struct.pack("<HHII", tag, 4, count, value) for tag, count, value in tags)
    start = b"II*\0" + struct.pack("<I", offsets + len(tables))
    file = start + strip + tables + struct.pack("<H", len(tags)) + entries + bytes(4)
    (folder / "strips_share_bytes.tif").write_bytes(file)


def write_animation_with_large_frame(folder: Path) -> None:
    """An animation of 10 x 10 pixels whose frame holds an image of 16383 x 16383."""
    lossless = io.BytesIO()
    Image.new("RGB", (8, 8), (10, 200, 30)).save(lossless, "WEBP", lossless=True)
    image = bytearray(lossless.getvalue()[12:])
    # One colour takes no bits, however many pixels there are: only the two sizes less one, 14 bits each, tell.
    bits = struct.unpack_from("<I", image, 9)[0] & ~0xFFFFFFF
    struct.pack_into("<I", image, 9, bits | 16382 << 14 | 16382)
    nine = struct.pack("<I", 9)[:3]
    frame = bytes(6) + nine + nine + bytes(4) + bytes(image)
    body = webp_chunk(b"VP8X", b"\2\0\0\0" + nine + nine) + webp_chunk(b"ANIM", bytes(6)) + webp_chunk(b"ANMF", frame)
    (folder / "animated_with_large_frame.webp").write_bytes(webp_chunk(b"RIFF", b"WEBP" + body))


def webp_chunk(kind: bytes, content: bytes) -> bytes:
    """REQUIRES: an even number of bytes."""
    return kind + struct.pack("<I", len(content)) + content


def write_bmps(colours: Array8, alpha: Array8) -> None:
    image = Image.fromarray(colours)
    image.save(FOLDER / "colours.bmp")
    image.convert("L").save(FOLDER / "grey.bmp")
    image.convert("1").save(FOLDER / "one_bit.bmp")
    image.quantize(16).save(FOLDER / "palette.bmp")
    with_alpha(colours, alpha).save(FOLDER / "alpha.bmp")
    red, green, blue = (colours[..., channel].astype(np.uint16) for channel in range(3))
    write_palette_bmps(image)
    write_wide_bmp("555.bmp", red >> 3 << 10 | green >> 3 << 5 | blue >> 3, ())
    write_wide_bmp("565.bmp", red >> 3 << 11 | green >> 2 << 5 | blue >> 3, (0xF800, 0x07E0, 0x001F))


def write_palette_bmps(image: Image.Image) -> None:
    """Palettes of few colours; OS/2's header; run lengths, with literal runs, a row that ends early and a move."""
    few = image.quantize(16)
    indices, palette = np.asarray(few), np.asarray(few.getpalette()[:48], np.uint8).reshape(16, 3)[:, ::-1]
    entries = np.concatenate([palette, np.zeros((16, 1), np.uint8)], axis=-1).tobytes()

    def write(name: str, header: bytes, colours: bytes, body: bytes) -> None:
        start = 14 + len(header) + len(colours)
        file = b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start) + header + colours + body
        (FOLDER / name).write_bytes(file)

    def info(bits: int, compression: int) -> bytes:
        return struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, bits, compression, 0, 0, 0, 16, 0)

    def halves(row: Array8) -> bytes:
        even = np.pad(row, (0, len(row) % 2))
        return (even[::2] << 4 | even[1::2]).tobytes()

    rows = b"".join(halves(row).ljust(8, b"\0") for row in indices[::-1])
    write("palette_4.bmp", info(4, 0), entries, rows)
    core = struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 4)
    write("os_2.bmp", core, palette.tobytes(), rows)
    for bits in (8, 4):
        body = b""
        for number, row in enumerate(indices[::-1]):
            literal = row[3:10].tobytes() if bits == 8 else halves(row[3:10])
            literal += bytes(len(literal) % 2)
            first = int(row[0]) if bits == 8 else int(row[0]) << 4 | int(row[1])
            body += bytes([3, first, 0, 7]) + literal
            # 3 pixels are left; a move passes over two of them, and the end of the row over the rest.
            body += bytes([0, 2, 2, 0]) if number == 2 else b""
            body += bytes([0, 0]) if number % 3 else bytes([1, first, 0, 0])
        write(f"run_lengths_{bits}.bmp", info(bits, 1 if bits == 8 else 2), entries, body + bytes([0, 1]))


def write_wide_bmp(name: str, pixels: Array16, masks: tuple[int, ...]) -> None:
    """16 bits a pixel, rows from the bottom, padded to 4 bytes."""
    rows = np.zeros((HEIGHT, WIDTH + WIDTH % 2), np.uint16)
    rows[:, :WIDTH] = pixels[::-1]
    behind = struct.pack(f"<{len(masks)}I", *masks)
    body = rows.astype("<u2").tobytes()
    start = 54 + len(behind)
    info = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 16, 3 if masks else 0, len(body), 0, 0, 0, 0)
    header = b"BM" + struct.pack("<IHHI", start + len(body), 0, 0, start)
    (FOLDER / name).write_bytes(header + info + behind + body)


def write_tiffs(colours: Array8, alpha: Array8) -> None:
    image = Image.fromarray(colours)
    for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        image.save(FOLDER / f"{compression}.tif", compression=compression)
    for compression in ("zstd", "lzma"):
        image.save(FOLDER / f"{compression}.tif", compression=compression)
    for compression in ("tiff_ccitt", "group3", "group4"):
        image.convert("1").save(FOLDER / f"{compression}.tif", compression=compression)
    image.save(FOLDER / "strips.tif", compression="tiff_lzw", tiffinfo={278: 2})
    image.convert("L").save(FOLDER / "grey.tif")
    image.quantize(16).save(FOLDER / "palette.tif")
    with_alpha(colours, alpha).save(FOLDER / "alpha.tif")
    inks(colours, alpha).save(FOLDER / "cmyk.tif")
    image.save(FOLDER / "orientation_7.tif", exif=exif(7))
    image.save(FOLDER / "two_pages.tif", save_all=True, append_images=[image.resize((3, 2))])
    multiplied = np.concatenate([(colours.astype(np.uint16) * alpha // 255).astype(np.uint8), alpha], axis=-1)
    write_tiff("associated_alpha.tif", multiplied, ">", {338: 1})
    write_tiff("big_endian.tif", colours, ">", {})
    write_tiled_tiff("tiles.tif", colours)


def write_wide(colours: Array8) -> dict[str, Array8]:
    """Images of 16 bits a sample, and their pixels by formula."""
    wide = colours.astype(np.uint16) * 257 + np.arange(HEIGHT * WIDTH * 3, dtype=np.uint16).reshape(colours.shape) * 3
    eight = ((wide.astype(np.int64) + 128) // 257).clip(max=255).astype(np.uint8)
    grey = eight[..., :1].repeat(3, axis=-1)
    write_wide_png("wide_colours.png", wide, 2)
    write_wide_png("wide_grey.png", wide[..., :1], 0)
    write_tiff("wide_colours.tif", wide, "<", {})
    write_tiff("wide_colours_big_endian.tif", wide, ">", {274: 3})
    write_tiff("wide_white_is_zero.tif", wide[..., :1], "<", {262: 0})
    return {
        "wide_colours.png": eight,
        "wide_grey.png": grey,
        "wide_colours.tif": eight,
        "wide_colours_big_endian.tif": np.ascontiguousarray(eight[::-1, ::-1]),
        "wide_white_is_zero.tif": 255 - grey,
    }


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


def write_tiff(name: str, pixels: Array8 | Array16, order: str, more_tags: dict[int, int]) -> None:
    """One strip, not compressed; `order` is struct's."""
    samples = pixels.shape[-1]
    tags = strip_tags(pixels) | {262: 1 if samples == 1 else 2, 273: 8, 278: HEIGHT} | more_tags
    body = pixels.astype(pixels.dtype.newbyteorder(order)).tobytes()
    assemble_tiff(name, body, tags | {279: len(body)}, order)


def write_tiled_tiff(name: str, colours: Array8) -> None:
    """One tile of 16 x 16, deflated."""
    tile = np.zeros((16, 16, 3), np.uint8)
    tile[:HEIGHT, :WIDTH] = colours
    body = zlib.compress(tile.tobytes())
    tags = strip_tags(colours) | {259: 8, 262: 2, 322: 16, 323: 16, 324: 8, 325: len(body)}
    assemble_tiff(name, body, tags, "<")


def strip_tags(pixels: Array8 | Array16) -> dict[int, int]:
    """Size, bits, no compression, samples."""
    return {256: WIDTH, 257: HEIGHT, 258: 8 * pixels.dtype.itemsize, 259: 1, 277: pixels.shape[-1]}


def assemble_tiff(name: str, body: bytes, tags: dict[int, int], order: str) -> None:
    """The pixels, then a directory of LONG values; BitsPerSample as one SHORT for each sample stands behind it."""
    body += b"\0" * (len(body) % 2)
    directory = 8 + len(body)
    samples = tags[277]
    entries = b""
    for tag, value in sorted(tags.items()):
        if tag != 258:
            entries += struct.pack(order + "HHII", tag, 4, 1, value)
        elif samples <= 2:
            entries += struct.pack(order + "HHIHH", tag, 3, samples, value, value if samples == 2 else 0)
        else:
            entries += struct.pack(order + "HHII", tag, 3, samples, directory + 2 + 12 * len(tags) + 4)
    start = {"<": b"II*\0", ">": b"MM\0*"}[order] + struct.pack(order + "I", directory)
    bits = struct.pack(f"{order}{samples}H", *[tags[258]] * samples)
    count = struct.pack(order + "H", len(tags))
    (FOLDER / name).write_bytes(start + body + count + entries + b"\0\0\0\0" + bits)


def write_damaged_tiffs() -> None:
    """One damage a line: a file's name, an offset, the bytes (hexadecimal) that stand there instead, and "refused" or
    "taken": what Pillow does with it.
    """
    random = np.random.default_rng(23)
    lines = []
    names = "group3 group4 jpeg lzma packbits strips tiff_adobe_deflate tiff_ccitt tiff_lzw zstd"
    for path in (FOLDER / f"{name}.tif" for name in names.split()):
        file = path.read_bytes()
        for offset, damage in damages(file, random):
            damaged = file[:offset] + damage + file[offset + len(damage) :]
            verdict = "taken" if is_taken_by_pillow(damaged) else "refused"
            lines.append(f"{path.name} {offset} {damage.hex()} {verdict}\n")
    (FOLDER.parent / "damaged_tiffs.txt").write_text("".join(lines), encoding="ascii")


def damages(file: bytes, random: np.random.Generator) -> list[tuple[int, bytes]]:
    """In the first strip: a bit flipped, random bytes, ones to its end; and fewer bytes in it. No zeros: only newer
    versions of Zstandard find them.
    """
    with Image.open(io.BytesIO(file)) as image:
        tags = dict(image.tag_v2)
    begin, length = int(tags[273][0]), int(tags[279][0])
    places = begin + random.integers(0, length, 12)
    found = [(int(at), bytes([file[at] ^ 1 << int(random.integers(8))])) for at in places[:4]]
    found += [(int(at), random.bytes(min(8, begin + length - int(at)))) for at in places[4:8]]
    found += [(int(at), b"\xff" * (begin + length - int(at))) for at in places[8:]]
    order = "<" if file.startswith(b"II") else ">"
    directory = struct.unpack_from(order + "I", file, 4)[0]
    for entry in range(struct.unpack_from(order + "H", file, directory)[0]):
        at = directory + 2 + 12 * entry
        tag, kind, count = struct.unpack_from(order + "HHI", file, at)
        if tag == 279:
            place = at + 8 if count == 1 else struct.unpack_from(order + "I", file, at + 8)[0]
            found += [(place, struct.pack(order + {3: "H", 4: "I"}[kind], length * part // 4)) for part in (1, 3)]
    return found


def is_taken_by_pillow(file: bytes) -> bool:
    try:
        with Image.open(io.BytesIO(file)) as image:
            image.convert("RGB")
    except (OSError, ValueError, SyntaxError):
        return False
    return True


if __name__ == "__main__":
    main()
