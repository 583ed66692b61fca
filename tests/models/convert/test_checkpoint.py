"""Reading files of torch.save: broken and hostile ones are refused, and nothing in them is run."""

from __future__ import annotations

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from longshort_convert.checkpoint import read_checkpoint
from longshort_convert.errors import ConvertError
from longshort_convert.input_files import refuse_other_formats
from longshort_convert.plain_pickle import Namespace
from longshort_convert.stored_tensors import Tensor
from longshort_convert.weights import StateDict

from models.convert import made_up


def _archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def _opcodes(*values: object) -> bytes:
    """What a pickle does to put these values on its stack."""
    return b"".join(pickle.dumps(value, protocol=2)[2:-1] for value in values)


def _tensor(
    offset: object, shape: object, stride: object, *, elements: object = 4, storage: str = "FloatStorage"
) -> bytes:
    """The pickle of a tensor over storage "s"."""
    rebuild = b"ctorch._utils\n_rebuild_tensor_v2\n"
    reference = b"(" + _opcodes("storage") + f"ctorch\n{storage}\n".encode() + _opcodes("s", "cpu", elements) + b"tQ"
    return b"\x80\x02" + rebuild + b"(" + reference + _opcodes(offset, shape, stride, False) + b"tR."


def _with_storage(path: Path, pickled: bytes, storage: bytes) -> Path:
    return _archive(path, {"a/data.pkl": pickled, "a/data/s": storage})


_FOUR_FLOATS = np.arange(4, dtype="<f4").tobytes()


def test_reads_values_and_tensors(tmp_path: Path) -> None:
    checkpoint = read_checkpoint(made_up.save(tmp_path, made_up.args_style()))
    assert isinstance(checkpoint["args"], Namespace)
    assert checkpoint["args"].values["d_model"] == 8
    weight = checkpoint["model"]["decoder.model.in_emb.weight"]
    assert isinstance(weight, Tensor)
    assert np.array_equal(weight.read(), made_up.state_dict()["decoder.model.in_emb.weight"])


def test_a_tensor_has_an_offset_and_strides(tmp_path: Path) -> None:
    tensor = read_checkpoint(_with_storage(tmp_path / "c", _tensor(1, (1, 2), (1, 2)), _FOUR_FLOATS))
    assert np.array_equal(tensor.read(), [[1.0, 3.0]])
    transposed = read_checkpoint(_with_storage(tmp_path / "c", _tensor(0, (2, 2), (1, 2)), _FOUR_FLOATS))
    assert np.array_equal(transposed.read(), [[0.0, 2.0], [1.0, 3.0]])
    assert transposed.read().flags.c_contiguous
    scalar = read_checkpoint(_with_storage(tmp_path / "c", _tensor(2, (), ()), _FOUR_FLOATS))
    assert scalar.read() == 2.0


def test_bfloat16_keeps_its_bits(tmp_path: Path) -> None:
    pickled = _tensor(0, (2,), (1,), elements=2, storage="BFloat16Storage")
    tensor = read_checkpoint(_with_storage(tmp_path / "c", pickled, b"\x80\x3f\x40\xc0"))
    assert (tensor.type_name, tensor.read().tolist()) == ("bfloat16", [0x3F80, 0xC040])
    assert StateDict({"a": tensor}).take({"a": (2,)})["a"].values.tolist() == [0x3F80, 0xC040]
    infinite = read_checkpoint(_with_storage(tmp_path / "c", pickled, b"\x80\x7f\xc0\xff"))
    with pytest.raises(ConvertError, match="tensor a has 2 values that are infinite or not a number"):
        StateDict({"a": infinite}).take({"a": (2,)})


def test_nothing_is_run(tmp_path: Path) -> None:
    trace = tmp_path / "was-here"
    for pickled in [
        b"cos\nsystem\n" + b"(" + _opcodes(f"touch {trace}") + b"tR.",
        b"cbuiltins\neval\n" + b"(" + _opcodes(f"open({str(trace)!r}, 'w')") + b"tR.",
        b"csubprocess\nPopen\n" + b"(" + _opcodes(["touch", str(trace)]) + b"tR.",
    ]:
        with pytest.raises(ConvertError, match="which the converter does not run"):
            read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": pickled}))
        assert not trace.exists()


@pytest.mark.parametrize(
    "pickled",
    [
        _tensor(0, (5,), (1,)),
        _tensor(1, (4,), (1,)),
        _tensor(0, (2, 2), (3, 1)),
        _tensor(5, (0,), (1,)),
        _tensor(-1, (2,), (1,)),
        _tensor(0, (-2,), (1,)),
        _tensor(3, (2,), (-1,)),
        _tensor(0, (2,), (1, 1)),
        _tensor(0, (2.0,), (1,)),
        _tensor(0, (True,), (1,)),
        _tensor(0, [2], (1,)),
        _tensor(0, (1 << 40,), (0,)),
        _tensor(0, (2,), (1,), elements=-4),
        _tensor(0, (2,), (1,), elements="4"),
    ],
)
def test_a_tensor_lies_inside_its_storage(pickled: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="broken checkpoint"):
        read_checkpoint(_with_storage(tmp_path / "c", pickled, _FOUR_FLOATS))


def test_a_storage_is_as_long_as_it_says(tmp_path: Path) -> None:
    for storage, words in [(_FOUR_FLOATS[:-1], "has 15 bytes"), (_FOUR_FLOATS + b"x", "has 17 bytes")]:
        tensor = read_checkpoint(_with_storage(tmp_path / "c", _tensor(0, (4,), (1,)), storage))
        with pytest.raises(ConvertError, match=words):
            tensor.read()
    tensor = read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": _tensor(0, (4,), (1,))}))
    with pytest.raises(ConvertError, match="a/data/s is missing"):
        tensor.read()


@pytest.mark.parametrize(
    "pickled",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02.",
        b"garbage",
        b"\x80\x02h\x05.",  # a memo that was never made
        b"\x80\x02X\xff\xff\xff\x7fabc.",  # a string longer than the file
        b"\x80\x02" + b"(" * 1000 + b".",
        b"\x80\x02ctorch\nFloatStorage\n)R.",  # a type is no function
        b"\x80\x02cargparse\nNamespace\n)\x81K\x03b.",  # a namespace whose values are a number
        b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(K\x01K\x02K\x03K\x04tR.",
        b"\x80\x02ctorch._utils\n_rebuild_parameter\n(K\x01tR.",
        b"\x80\x02(K\x01K\x02tQ.",  # a reference to no storage
        b"(" + _opcodes("true") + b"ios\nsystem\n.",  # a call by another opcode
        b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",  # a terabyte of zeros
        b"\x80\x02Nr\xff\xff\xff\x7f.",  # a memo of two thousand million objects
        b"\x80\x02ctorch\nFloatStorage\n}" + _opcodes("bits", "O") + b"sb.",  # changes a type
        b"\x80\x02ctorch\nFloatStorage\nN}" + _opcodes("bits", "O") + b"s\x86b.",
    ],
)
def test_a_broken_pickle_is_refused(pickled: bytes, tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="broken checkpoint"):
        read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": pickled}))


def test_every_cut_of_a_good_file_is_refused(tmp_path: Path) -> None:
    whole = made_up.save(tmp_path, {"a": np.zeros(3, np.float32)}).read_bytes()
    cut = tmp_path / "cut.pt"
    for length in range(len(whole)):
        cut.write_bytes(whole[:length])
        with pytest.raises(ConvertError, match="cut.pt"):
            read_checkpoint(cut)


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConvertError, match="no such file"):
        read_checkpoint(tmp_path / "missing")
    (tmp_path / "plain").write_bytes(pickle.dumps({"model": 1}))
    with pytest.raises(ConvertError, match="neither a file of torch.save nor one of safetensors"):
        read_checkpoint(tmp_path / "plain")
    with pytest.raises(ConvertError, match="contains 0 pickles"):
        read_checkpoint(_archive(tmp_path / "c", {"a/other": b""}))
    with pytest.raises(ConvertError, match="contains 2 pickles"):
        read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": b"", "b/data.pkl": b""}))
    with pytest.raises(ConvertError, match="byte order b'big'"):
        read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": b"N.", "a/byteorder": b"big"}))
    with pytest.raises(ConvertError, match="is compressed"):
        read_checkpoint(_archive(tmp_path / "c", {"a/data.pkl": b"N."}, zipfile.ZIP_DEFLATED))


def test_a_fifo_is_refused_as_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ConvertError, match="fifo: is not a regular file; write its content to one first"):
        refuse_other_formats(tmp_path / "fifo")
