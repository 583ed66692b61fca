"""Text files that downloads and tools leave under the names of others."""

from __future__ import annotations

LFS_POINTER = "a pointer of Git LFS (get the file by `git lfs pull`)"
HTML = "an HTML page"
_BEGINNINGS = (
    (b"version https://git-lfs.github.com/spec/", LFS_POINTER),
    (b"<!doctype html", HTML),
    (b"<html", HTML),
)


def mistaken(head: bytes) -> str:
    """What such a file is, by its first bytes; empty for other files."""
    text = head[:1024].removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return next((what for begin, what in _BEGINNINGS if text.startswith(begin)), "")
