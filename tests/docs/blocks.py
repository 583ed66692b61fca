"""The blocks of code on the pages of the documentation."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from integration.server_process import ROOT

PAGES = [
    "README.md",
    "clients/python/README.md",
    *sorted(str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")),
]


@dataclass(frozen=True)
class Block:
    page: str
    language: str
    code: str


def blocks_of(page: str, *languages: str) -> list[Block]:
    """A page's blocks in these languages, or all of its blocks, in their order."""
    found = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    blocks = [Block(page, language, textwrap.dedent(code)) for language, code in found]
    return [block for block in blocks if not languages or block.language in languages]


def block_of(page: str, beginning: str) -> Block:
    """The only block of a page that begins with these characters."""
    (block,) = [block for block in blocks_of(page) if block.code.startswith(beginning)]
    return block
