"""Writes a model directory atomically."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longshort_convert.safetensors_file import write_safetensors
from longshort_convert.weights import Weight

_LIST_OF_PLAIN_VALUES = re.compile(r"\[\s+([^\[\]{}]*?)\s+\]")


@dataclass(frozen=True)
class ModelFiles:
    """The content of config.json, model.safetensors and, unless None, of the other files."""

    config: Mapping[str, Any]
    weights: Mapping[str, Weight]
    summary: str
    vocabulary: bytes | None = None
    labels: bytes | None = None
    tokenizer: bytes | None = None
    notes: Sequence[str] = ()  # what the user must know


def write_directory(out: Path, files: ModelFiles) -> None:
    """Writes the directory next to `out` under another name, then renames it to `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{out.name}.partial-", dir=out.parent))
    try:
        partial.chmod(0o755)
        (partial / "config.json").write_text(_to_json(files.config), encoding="utf-8")
        write_safetensors(partial / "model.safetensors", files.weights)
        # The library makes its files readable for the owner only, but servers run as other users.
        shutil.copymode(partial / "config.json", partial / "model.safetensors")
        others = {"vocabulary.txt": files.vocabulary, "labels.txt": files.labels, "tokenizer.json": files.tokenizer}
        for name, content in others.items():
            if content is not None:
                (partial / name).write_bytes(content)
        os.rename(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _to_json(config: Mapping[str, Any]) -> str:
    """JSON with one field per line. A list stays on its field's line."""
    text = json.dumps(config, indent=2)
    return _LIST_OF_PLAIN_VALUES.sub(lambda found: "[" + re.sub(r"\s*\n\s*", " ", found[1]) + "]", text) + "\n"
