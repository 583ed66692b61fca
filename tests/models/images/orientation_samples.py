"""Images whose orientation stands where cameras, phones and editors write it: in irregular EXIF, in XMP, in the texts
of a PNG, in several places that contradict each other."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator

from PIL import Image

ORIENTATION = 0x112
SHORT, LONG, RATIONAL, FLOAT, BYTE, TEXT, SIGNED_BYTE, NO_TYPE = 3, 4, 5, 11, 1, 2, 6, 99
EXIF_PREFIX = b"Exif\0\0"
XMP_PREFIX = b"http://ns.adobe.com/xap/1.0/\0"
XMP_ATTRIBUTE = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
XMP_ELEMENT = b"<rdf:Description><tiff:Orientation>8</tiff:Orientation></rdf:Description>"
XMP_SPLIT = b"<tiff:Orientation /><tiff:Orientation = '3'/>" + XMP_ELEMENT


def samples(image: Image.Image) -> Iterator[tuple[str, bytes]]:
    """File names and files. Pillow must read all of them."""
    yield from jpegs(image)
    yield from pngs(image)
    yield from webps(image)


def directory(*entries: tuple[int, int, bytes], order: str = "<", magic: str = "<", behind: bytes = b"") -> bytes:
    """A TIFF file with one directory. An entry: type, count, and four bytes of values or of their place."""
    head = {"<": b"II", ">": b"MM"}[order] + struct.pack(magic + "H", 42) + struct.pack(order + "I", 8)
    body = struct.pack(order + "H", len(entries))
    for kind, count, value in entries:
        body += struct.pack(order + "HHI", ORIENTATION, kind, count) + value
    return head + body + bytes(4) + behind


def short(orientation: int, order: str = "<") -> tuple[int, int, bytes]:
    return SHORT, 1, struct.pack(order + "HH", orientation, 0)


BEHIND_ONE_ENTRY = struct.pack("<I", 8 + 2 + 12 + 4)


def irregular_exif() -> dict[str, bytes]:
    big = directory(short(6, ">"), order=">", magic=">")
    return {
        "big_endian": big,
        "magic_in_other_order": directory(short(8, ">"), order=">", magic="<"),
        "long": directory((LONG, 1, struct.pack("<I", 3))),
        "two_values": directory((SHORT, 2, struct.pack("<HH", 6, 1))),
        "three_values": directory((SHORT, 3, BEHIND_ONE_ENTRY), behind=struct.pack("<HHH", 6, 1, 1)),
        "rational": directory((RATIONAL, 1, BEHIND_ONE_ENTRY), behind=struct.pack("<II", 12, 2)),
        "rational_by_zero": directory((RATIONAL, 1, BEHIND_ONE_ENTRY), behind=struct.pack("<II", 6, 0)),
        "float": directory((FLOAT, 1, struct.pack("<f", 6))),
        "byte": directory((BYTE, 1, b"\6\0\0\0")),
        "signed_byte": directory((SIGNED_BYTE, 1, b"\6\0\0\0")),
        "text": directory((TEXT, 2, b"6\0\0\0")),
        "nine": directory(short(9)),
        "invalid_type_first": directory((NO_TYPE, 1, bytes(4)), short(6)),
        "no_values_first": directory((SHORT, 0, bytes(4)), short(6)),
        "values_beyond_the_end_first": directory((RATIONAL, 1 << 20, bytes(4)), short(6)),
        "two_orientations": directory(short(6), short(3)),
        "cut_after_the_entry": directory(short(6))[: 8 + 2 + 12],
        "more_entries_than_there_are": directory(short(6)).replace(b"\1\0", b"\7\0", 1),
        "three_prefixes": EXIF_PREFIX + directory(short(6)),
        "four_prefixes": 2 * EXIF_PREFIX + directory(short(6)),
    }


def jpegs(image: Image.Image) -> Iterator[tuple[str, bytes]]:
    plain = saved(image, "JPEG", quality=90)

    def jpeg(*segments: bytes) -> bytes:
        return plain[:2] + b"".join(segments) + plain[2:]

    for name, exif in irregular_exif().items():
        # If EXIF has no orientation, XMP's counts.
        yield f"exif_{name}.jpg", jpeg(segment(EXIF_PREFIX + exif), segment(XMP_PREFIX + XMP_ELEMENT))
    xmp = segment(XMP_PREFIX + XMP_ATTRIBUTE)
    exif = directory(short(3))
    yield "xmp_attribute.jpg", jpeg(xmp)
    yield "xmp_element.jpg", jpeg(segment(XMP_PREFIX + XMP_ELEMENT))
    yield "xmp_first_without_digit.jpg", jpeg(segment(XMP_PREFIX + XMP_SPLIT))
    yield "xmp_twice.jpg", jpeg(segment(XMP_PREFIX + XMP_ELEMENT), xmp)
    yield "xmp_and_exif.jpg", jpeg(xmp, segment(EXIF_PREFIX + exif))
    yield "xmp_and_exif_without_orientation.jpg", jpeg(segment(EXIF_PREFIX + directory()), xmp)
    yield "xmp_and_empty_exif.jpg", jpeg(segment(EXIF_PREFIX), xmp)
    yield "xmp_and_broken_exif.jpg", jpeg(segment(EXIF_PREFIX + b"no directory"), xmp)
    yield "exif_in_two_segments.jpg", jpeg(segment(EXIF_PREFIX + exif[:12]), segment(EXIF_PREFIX + exif[12:]))
    yield "exif_twice.jpg", jpeg(segment(EXIF_PREFIX + directory(short(6))), segment(EXIF_PREFIX + exif))
    yield "exif_after_the_scan.jpg", plain[:-2] + segment(EXIF_PREFIX + exif) + plain[-2:]


def pngs(image: Image.Image) -> Iterator[tuple[str, bytes]]:
    plain = saved(image, "PNG")
    header, rest = plain[:33], plain[33:]
    raw = raw_profile(EXIF_PREFIX + directory(short(6)))
    profile, xmp = b"Raw profile type exif", b"XML:com.adobe.xmp"
    before = {
        "profile_text": chunk(b"tEXt", profile + b"\0" + raw),
        "profile_compressed": chunk(b"zTXt", profile + b"\0\0" + zlib.compress(raw)),
        "profile_international": chunk(b"iTXt", profile + b"\0\0\0en\0key\0" + raw),
        "profile_without_prefix": chunk(b"tEXt", profile + b"\0" + raw_profile(directory(short(8)))),
        "profile_and_exif": chunk(b"tEXt", profile + b"\0" + raw) + chunk(b"eXIf", directory(short(3))),
        "profile_of_iptc": chunk(b"tEXt", b"Raw profile type iptc\0" + raw),
        "text_exif": chunk(b"tEXt", b"exif\0" + directory(short(6))),
        "xmp_international": chunk(b"iTXt", xmp + b"\0\0\0\0\0" + XMP_ATTRIBUTE),
        "xmp_international_compressed": chunk(b"iTXt", xmp + b"\0\1\0\0\0" + zlib.compress(XMP_ELEMENT)),
        "xmp_unknown_compression": chunk(b"iTXt", xmp + b"\0\1\1\0\0" + zlib.compress(XMP_ELEMENT)),
        "xmp_text": chunk(b"tEXt", xmp + b"\0" + XMP_ATTRIBUTE),
        "xmp_compressed_and_cut": chunk(b"zTXt", xmp + b"\0\0" + zlib.compress(XMP_ATTRIBUTE)[:-4]),
        "xmp_twice": chunk(b"tEXt", xmp + b"\0" + XMP_ATTRIBUTE)
        + chunk(b"zTXt", xmp + b"\0\0" + zlib.compress(XMP_ELEMENT)),
        "xmp_and_exif": chunk(b"tEXt", xmp + b"\0" + XMP_ATTRIBUTE) + chunk(b"eXIf", directory(short(3))),
    }
    text, element = chunk(b"tEXt", profile + b"\0" + raw), b"\0\0\0\0\0" + XMP_ELEMENT
    another = b"\0\0\0en\0key\0" + raw_profile(EXIF_PREFIX + directory(short(8)))
    before |= {
        "profile_not_utf8": chunk(b"iTXt", profile + another + b"\xff"),
        "profile_and_one_not_utf8": text + chunk(b"iTXt", profile + another + b"\xff"),
        "profile_and_one_of_a_language_not_utf8": text + chunk(b"iTXt", profile + another.replace(b"en", b"\xe9n")),
        "profile_and_one_with_a_keyword_not_utf8": text + chunk(b"iTXt", profile + another.replace(b"key", b"k\xe9")),
        "profile_and_one_damaged": text + chunk(b"iTXt", profile + b"\0\1\0\0\0no zlib"),
        "profile_and_a_damaged_compressed_text": text + chunk(b"zTXt", profile + b"\0\0no zlib"),
        "profile_and_another": text + chunk(b"iTXt", profile + another),
        "xmp_not_utf8": chunk(b"iTXt", xmp + element + b"\xff"),
        "xmp_and_one_not_utf8": chunk(b"tEXt", xmp + b"\0" + XMP_ATTRIBUTE) + chunk(b"iTXt", xmp + element + b"\xff"),
        "xmp_empty_and_one_not_utf8": chunk(b"iTXt", xmp + element + b"\xff") + chunk(b"tEXt", xmp + b"\0"),
        "xmp_and_one_damaged": chunk(b"iTXt", xmp + element) + chunk(b"iTXt", xmp + b"\0\1\0\0\0no zlib"),
    }
    for name, chunks in before.items():
        yield f"{name}.png", header + chunks + rest
    yield "exif_after_the_pixels.png", plain[:-12] + chunk(b"eXIf", directory(short(6))) + plain[-12:]
    animation = saved(image, "PNG", save_all=True, append_images=[image.point(lambda value: 255 - value)])
    yield "exif_after_the_second_frame.png", animation[:-12] + chunk(b"eXIf", directory(short(6))) + animation[-12:]


def webps(image: Image.Image) -> Iterator[tuple[str, bytes]]:
    def webp(**metadata: bytes) -> bytes:
        return saved(image, "WEBP", lossless=True, **metadata)

    exif = directory(short(6))
    yield "xmp.webp", webp(xmp=XMP_ATTRIBUTE)
    yield "xmp_and_exif.webp", webp(xmp=XMP_ATTRIBUTE, exif=directory(short(8)))
    # Pillow takes one prefix off when it writes.
    yield "exif_two_prefixes.webp", webp(exif=3 * EXIF_PREFIX + exif)
    with_flag = webp(xmp=XMP_ATTRIBUTE, exif=exif)
    flags = 12 + 8
    yield "flag_of_xmp_only.webp", with_flag[:flags] + bytes([with_flag[flags] & ~8]) + with_flag[flags + 1 :]
    yield "no_flags.webp", with_flag[:flags] + bytes([with_flag[flags] & ~12]) + with_flag[flags + 1 :]


def saved(image: Image.Image, kind: str, **options: object) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def segment(content: bytes) -> bytes:
    return b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def raw_profile(content: bytes) -> bytes:
    """As ImageMagick writes it: 36 bytes a line."""
    digits = content.hex().encode()
    lines = [digits[at : at + 72] for at in range(0, len(digits), 72)]
    return b"\nexif\n" + b"%8d" % len(content) + b"\n" + b"\n".join(lines) + b"\n"
