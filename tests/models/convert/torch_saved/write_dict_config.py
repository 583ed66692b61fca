"""Writes dict_config.pt, whose cfg is a DictConfig, as versions of fairseq of 2020 saved it.

python3 -m venv build/omegaconf && build/omegaconf/bin/pip install omegaconf==2.0.6 numpy
PYTHONPATH=tests build/omegaconf/bin/python tests/models/convert/torch_saved/write_dict_config.py
"""

from __future__ import annotations

from dataclasses import make_dataclass
from pathlib import Path

from omegaconf import MISSING, OmegaConf
from reference import checkpoint_file

from models.convert import made_up

# The configs of fairseq's parts are dataclasses with typed fields.
Model = make_dataclass(
    "Model",
    [("_name", str, "transformer-ls"), *((name, type(value), value) for name, value in made_up.FIELDS.items())],
    namespace={"__module__": __name__},
)
Task = make_dataclass(
    "Task", [("_name", str, "truncated_bptt_lm"), ("data", str, MISSING)], namespace={"__module__": __name__}
)

if __name__ == "__main__":
    common = {"seed": 1, "again": "${common.seed}", "betas": [0.9, 0.98]}
    cfg = OmegaConf.create({"_name": None, "model": Model, "task": Task, "common": common})
    checkpoint = {"args": None, "cfg": cfg, "model": made_up.state_dict()}
    checkpoint_file.write(Path(__file__).parent / "dict_config.pt", checkpoint)
