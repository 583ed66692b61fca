"""Writes the files of this folder with torch.save, by a Python that has PyTorch: write.py [FOLDER]."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import torch


def checkpoint() -> dict[str, Any]:
    """What training programs save: weights of several types that share storages, arguments, an optimizer's state."""
    layer = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(layer.parameters(), betas=(0.9, 0.98))
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).reshape(2, 3))
        layer.bias.fill_(0.5)
    rows = torch.arange(12.0).reshape(3, 4)
    return {
        "args": argparse.Namespace(d_model=8, betas=(0.9, 0.98), name="tiny", inner={"dropout": 0.1}),
        "model": layer.state_dict(),
        "optimizer": optimizer.state_dict(),
        "parameter": torch.nn.Parameter(rows),
        "views": {"row": rows[1], "column": rows[:, 2], "transposed": rows.T},
        "types": {
            name: torch.arange(3).to(getattr(torch, name))
            for name in ("float16", "bfloat16", "float64", "int64", "int32", "int16", "int8", "uint8", "bool")
        },
        "scalar": torch.tensor(7),
        "empty": torch.zeros(0, 3),
        "size": rows.shape,
        "device": torch.device("cpu"),
        "dtype": torch.float16,
        "step": 1 << 40,
        "history": [{"loss": 1.5}, None, True, b"bytes", {1, 2}],
    }


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    torch.manual_seed(1)
    saved = checkpoint()
    torch.save(saved, folder / "legacy.pt", _use_new_zipfile_serialization=False)
    saved["module"] = torch.nn.Linear(3, 2)
    torch.save(saved, folder / "zip.pt")
    torch.save(saved, folder / "protocol_4.pt", pickle_protocol=4)
