"""Files that torch.save writes are read. Pickles that stand for huge objects, or change what they did not build, are
refused soon."""

from __future__ import annotations

import pickle
import random
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from longshort_convert import plain_pickle
from longshort_convert.checkpoint import read_checkpoint
from longshort_convert.errors import ConvertError
from longshort_convert.plain_pickle import BROKEN, Namespace, Placeholder
from longshort_convert.stored_tensors import Tensor

# Written by torch 2.11 (write.py there).
SAVED = Path(__file__).parent / "torch_saved"


@pytest.mark.parametrize("name", ["zip.pt", "protocol_4.pt", "legacy.pt"])
def test_what_torch_saves_is_read(name: str) -> None:
    found = read_checkpoint(SAVED / name)
    rows = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    assert isinstance(found["args"], Namespace)
    assert found["args"].values == {"d_model": 8, "betas": (0.9, 0.98), "name": "tiny", "inner": {"dropout": 0.1}}
    assert np.array_equal(found["model"]["weight"].read(), np.arange(6.0).reshape(2, 3))
    assert found["model"]["bias"].read().tolist() == [0.5, 0.5]
    assert found["optimizer"]["param_groups"][0]["betas"] == (0.9, 0.98)
    assert found["optimizer"]["state"][0]["step"].read() == 1
    assert np.array_equal(found["parameter"].read(), rows)
    views = {"row": rows[1], "column": rows[:, 2], "transposed": rows.T}
    for view, values in views.items():
        assert np.array_equal(found["views"][view].read(), values)
        assert found["views"][view].storage.name == found["parameter"].storage.name, "they share it"
    types = {"bfloat16": [0, 0x3F80, 0x4000], "bool": [False, True, True]}
    for type_name, tensor in found["types"].items():
        assert (tensor.type_name, tensor.read().tolist()) == (type_name, types.get(type_name, [0, 1, 2]))
    assert found["scalar"].read() == 7 and found["empty"].shape == (0, 3)
    unknown = ("size", "device", *(("module",) if name != "legacy.pt" else ()))
    assert all(isinstance(found[one], Placeholder) for one in unknown)
    assert found["step"] == 1 << 40
    assert found["history"][:3] == [{"loss": 1.5}, None, True]


def doubled(count: int, put: bytes = b"q\0", get: bytes = b"h\0") -> bytes:
    """A tuple of the same tuple twice, and so on: 2^count parts."""
    return b")" + (put + get + b"\x86") * count


MODULE = b"ctorch\nModule\n"
CONFIG = b"comegaconf.dictconfig\nDictConfig\n)\x81"
NUMBER = b"cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nU\x02i8\x85R"
HOSTILE = {
    "a key that is doubled by DUP": (b"}" + b")" + b"2\x86" * 40 + b"Ns.", "opcode DUP, which torch.save never writes"),
    "a key that is doubled by the memo": (b"}" + doubled(40) + b"Ns.", "a key of more than 100 parts"),
    "doubled keys of equal hashes": (b"}(" + doubled(40) + b"N" + doubled(40) + b"Nu.", "a key of more than 100 parts"),
    "a doubled key of a set": (b"\x8f(" + doubled(40) + b"\x90.", None),
    "a doubled key of a frozen set": (b"(" + doubled(40) + b"\x91.", None),
    "a doubled key of an ordered dict": (
        b"ccollections\nOrderedDict\n](" + doubled(40) + b"N\x86e\x85R.",
        "a key of more than 100 parts",
    ),
    "a long key": (b"}(" + b"N" * 2000 + b"tNs.", "a key of more than 100 parts"),
    "a huge number as a key": (b"}\x8b" + (10**6).to_bytes(4, "little") + b"\x01" * 10**6 + b"Ns.", "a key of more"),
    "a doubled value": (doubled(40) + b".", r"more than 100 levels or \d+ parts"),
    "a doubled list": (b"]" + b"q\0](h\0h\0e" * 60 + b".", "parts"),
    "a doubled dict": (b"}" + b"q\0}(K\0h\0K\x01h\0u" * 60 + b".", "parts"),
    "a list in itself": (b"]q\0h\0a.", "contains itself"),
    "a deep list": (b"]" * 5000 + b"a" * 4999 + b".", "more than 100 levels"),
    "a deep tuple": (b")" + b"\x85" * 5000 + b".", "more than 100 levels"),
    "a change of a class": (MODULE + b"}U\x06appendNsb.", "changes the type torch.Module"),
    "a change of a class's attributes": (MODULE + b"N}U\x06appendNs\x86b.", "changes the type torch.Module"),
    "a change of a known class": (
        b"ccollections\nCounter\nN}U\x06update" + MODULE + b"s\x86b.",
        "changes the type Counter",
    ),
    "a change of a function": (b"ctorch._utils\n_rebuild_tensor\n}U\x01xNsb.", "changes a _RebuildTensor"),
    "items of a class": (MODULE + b"NNs.", "sets items of the type torch.Module"),
    "values appended to a class": (MODULE + b"Na.", "appends to the type torch.Module"),
    "an object of an object": (b"ctorch\nFloatStorage\n)\x81.", "makes an object of a ElementType"),
    "many types": (b"".join(b"cm\n%d\n0" % name for name in range(10_001)) + b"N.", "names more than 10000 types"),
    "a config in itself": (CONFIG + b"q\0}U\x08_content}U\x01ah\0ssb.", "contains itself"),
    "a config that is a key": (b"}" + CONFIG + b"Ns.", "unhashable"),
    "doubled configs": (
        CONFIG + b"q\0" + (CONFIG + b"}U\x08_content}(U\x01ah\0U\x01bh\0usbq\0") * 40 + b".",
        "more than 100 levels or",
    ),
    "a number without its bytes": (NUMBER + b"U\x03abc\x86R.", "of numpy's type i8 does not have its bytes"),
    "a call with no tuple": (MODULE + b"]R.", "without a tuple of arguments"),
}


def load(pickled: bytes) -> object:
    def storage(_: tuple[object, ...]) -> Placeholder:
        return Placeholder()

    return plain_pickle.load(b"\x80\x02" + pickled, storage)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pickle_is_refused_within_a_second(name: str) -> None:
    pickled, message = HOSTILE[name]
    began = time.process_time()
    if message is None:  # nothing is hashed
        assert isinstance(load(pickled), Placeholder)
    else:
        with pytest.raises((pickle.UnpicklingError, TypeError), match=message):
            load(pickled)
    assert time.process_time() - began < 1


def flip(pickled: bytes, draw: random.Random) -> bytes:
    changed = bytearray(pickled)
    for _ in range(draw.randrange(1, 4)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def cut(pickled: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(pickled))
    return pickled[:begin] + pickled[begin + draw.randrange(64) :]


def insert_opcodes(pickled: bytes, draw: random.Random) -> bytes:
    """Most likely between two opcodes, since most bytes are opcodes of one byte."""
    place = draw.randrange(len(pickled))
    opcodes = draw.choices(b"(.012)RbstuaeN]}lQ\x81\x85\x86\x87\x90\x91\x92\x94q\0h\0", k=draw.randrange(1, 12))
    return pickled[:place] + bytes(opcodes) + pickled[place:]


def repeat(pickled: bytes, draw: random.Random) -> bytes:
    begin = draw.randrange(len(pickled))
    end = begin + draw.randrange(1, 200)
    return pickled[:begin] + pickled[begin:end] * draw.randrange(2, 50) + pickled[end:]


@pytest.mark.parametrize("change", [flip, cut, insert_opcodes, repeat])
@pytest.mark.parametrize("name", ["zip.pt", "protocol_4.pt", "dict_config.pt"])
def test_changed_pickles_are_read_or_refused_in_bounded_time_and_memory(
    change: Callable[[bytes, random.Random], bytes], name: str
) -> None:
    with zipfile.ZipFile(SAVED / name) as archive:
        (member,) = (name for name in archive.namelist() if name.endswith("/data.pkl"))
        pickled = archive.read(member)[2:]
    draw = random.Random(f"{change.__name__} {name}")
    tracemalloc.start()
    try:
        for _ in range(400):
            changed = change(pickled, draw)
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            began = time.process_time()
            try:
                repr(load(changed))
            except (*BROKEN, ConvertError):
                pass
            assert time.process_time() - began < 1
            assert tracemalloc.get_traced_memory()[1] - before < (1 << 20) + 300 * len(changed)
    finally:
        tracemalloc.stop()


def test_changed_files_are_read_or_refused(tmp_path: Path) -> None:
    draw = random.Random(1)
    for name in ("zip.pt", "legacy.pt"):
        whole = (SAVED / name).read_bytes()
        for change in (flip, cut, repeat):
            for _ in range(100):
                (tmp_path / "changed.pt").write_bytes(change(whole, draw))
                try:
                    checkpoint = read_checkpoint(tmp_path / "changed.pt")
                    for tensor in [one for one in checkpoint.values() if isinstance(one, Tensor)]:
                        tensor.read()
                except ConvertError:
                    pass
                except AttributeError:
                    assert not isinstance(checkpoint, dict)
