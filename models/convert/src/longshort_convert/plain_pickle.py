"""Loads the pickles of torch.save as plain values and tensors, and runs no code that they name.

Objects of other types become placeholders: nothing of them is built, and their content is dropped. The pickle builds
only immutable objects (tuples), plain data and placeholders. Only what it has built itself can be changed.

A short pickle can stand for a huge object, whose parts are the same few objects. Keys and the result are bounded, so
that hashing, printing and walking them ends.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from longshort_convert.errors import ConvertError
from longshort_convert.saved_objects import (
    Config,
    Counter,
    Dict,
    EncodeText,
    Namespace,
    Node,
    NumpyScalar,
    NumpyType,
    Placeholder,
    placeholder_type,
)
from longshort_convert.stored_tensors import STORAGE_TYPES, Storage, Tensor, rebuild_tensor

# The exceptions of reading a broken file or pickle.
BROKEN = (
    pickle.UnpicklingError,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)

# The opcodes that Python's picklers write with protocols 2 to 5, except those of extensions, of buffers outside the
# pickle, and of old classes. None of them takes more memory than the pickle's length. DUP is not among them.
_OPCODE_NAMES = """
    PROTO FRAME STOP MARK POP POP_MARK GLOBAL STACK_GLOBAL REDUCE NEWOBJ NEWOBJ_EX BUILD BINPERSID BINPUT
    LONG_BINPUT MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 TUPLE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS
    FROZENSET
"""
_OPCODES = frozenset(_OPCODE_NAMES.split())
# Each takes up to some 100 bytes of memory. A tensor takes about 30.
_MAX_OPCODES = 16 << 20
# The most unknown types that a pickle may name. Each takes 1 KiB.
_MAX_TYPES = 10_000
_MAX_KEY_PARTS = 100
_MAX_KEY_BITS = 4096
_MAX_DEPTH = 100
# How often the result may have parts, where each counts as often as it is reached. A pickle without shared parts has at
# most one for each opcode.
_MAX_REPEATED = 16

# Names that only a hostile file refers to. They would become placeholders, too; the refusal warns the user.
_HOSTILE_MODULES = (
    "os",
    "posix",
    "nt",
    "subprocess",
    "sys",
    "importlib",
    "runpy",
    "shutil",
    "socket",
    "pty",
    "commands",
    "ctypes",
)
_HOSTILE_BUILTINS = ("eval", "exec", "compile", "open", "input", "__import__", "globals", "locals", "breakpoint")


class _RebuildTensor:
    """Stands for torch._utils._rebuild_tensor and _rebuild_tensor_v2."""

    __slots__ = ()

    def __call__(self, storage: object, offset: object, shape: object, stride: object, *_: object) -> object:
        if isinstance(storage, Placeholder):
            return storage
        if not isinstance(storage, Storage):
            raise pickle.UnpicklingError("a tensor has no storage")
        return rebuild_tensor(storage, offset, shape, stride)


class _RebuildParameter:
    """Stands for torch._utils._rebuild_parameter and _rebuild_parameter_with_state: a tensor that is trained."""

    __slots__ = ()

    def __call__(self, tensor: object, *_: object) -> object:
        if not isinstance(tensor, Tensor | Placeholder):
            raise pickle.UnpicklingError("a parameter is not a tensor")
        return tensor


class _RebuildFromType:
    """Stands for torch._tensor._rebuild_from_type_v2: a tensor of a subclass, or one with attributes."""

    __slots__ = ()

    def __call__(self, rebuild: object, _: object, arguments: object, *__: object) -> object:
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("a tensor's arguments are not a tuple")
        if not isinstance(rebuild, _RebuildTensor | _RebuildParameter):
            return placeholder_type("torch.Tensor")()
        return rebuild(*arguments)


class _Attribute:
    """Stands for getattr, by which older protocols name nested classes."""

    __slots__ = ()

    def __call__(self, *_: object) -> type[Placeholder]:
        return placeholder_type("a nested name")


_NODES = ("Any", "Boolean", "Bytes", "Enum", "Float", "Integer", "Path", "String")
_KNOWN_GLOBALS: dict[tuple[str, str], Any] = {
    ("argparse", "Namespace"): Namespace,
    ("builtins", "getattr"): _Attribute(),
    ("__builtin__", "getattr"): _Attribute(),
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): Dict,
    ("collections", "Counter"): Counter,
    ("_codecs", "encode"): EncodeText(),
    ("numpy", "dtype"): NumpyType,
    ("numpy.core.multiarray", "scalar"): NumpyScalar(),
    ("numpy._core.multiarray", "scalar"): NumpyScalar(),
    ("omegaconf.dictconfig", "DictConfig"): Config,
    **{("omegaconf.nodes", f"{kind}Node"): Node for kind in _NODES},
    ("torch._tensor", "_rebuild_from_type_v2"): _RebuildFromType(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    ("torch._utils", "_rebuild_parameter_with_state"): _RebuildParameter(),
    ("torch._utils", "_rebuild_tensor"): _RebuildTensor(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch.nn.parameter", "Parameter"): _RebuildParameter(),
    **{("torch", name): type_ for name, type_ in STORAGE_TYPES.items()},
}


class _Unpickler(pickle._Unpickler):
    """The unpickler in Python, since that in C has no way to check what an opcode is applied to."""

    dispatch: ClassVar = dict(pickle._Unpickler.dispatch)

    def __init__(self, pickled: bytes, storage: Callable[[tuple[Any, ...]], Storage | Placeholder]) -> None:
        super().__init__(io.BytesIO(pickled), encoding="latin1")
        self._storage = storage
        self._types: dict[str, type[Placeholder]] = {}

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN_GLOBALS.get((module, name))
        if known is not None:
            return known
        builtin = module in ("builtins", "__builtin__")
        if module.partition(".")[0] in _HOSTILE_MODULES or (builtin and name in _HOSTILE_BUILTINS):
            raise ConvertError(f"refers to {module}.{name}, which the converter does not run; do not load this file")
        whole = f"{module}.{name}"
        if whole not in self._types and len(self._types) >= _MAX_TYPES:
            raise pickle.UnpicklingError(f"its pickle names more than {_MAX_TYPES} types")
        return self._types.setdefault(whole, placeholder_type(whole))

    def persistent_load(self, pid: Any) -> Storage | Placeholder:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a persistent reference is not to a storage")
        return self._storage(pid)

    def _build(self) -> None:
        state = self.stack.pop()
        built = self.stack[-1]
        if isinstance(built, Namespace | Config | Node | NumpyType | Placeholder):
            built.__setstate__(state)
        elif not isinstance(built, dict):  # the attributes of a dict's subclass are dropped
            raise pickle.UnpicklingError(f"its pickle changes {_kind(built)}, which torch.save never does")

    def _call(self) -> None:
        arguments = self.stack.pop()
        if not isinstance(arguments, tuple):
            raise pickle.UnpicklingError("its pickle calls a name without a tuple of arguments")
        for pairs in arguments if self.stack[-1] is collections.OrderedDict else ():
            for pair in pairs if isinstance(pairs, list | tuple) else ():
                _check_key(pair[:1] if isinstance(pair, list | tuple) else pair)
        self.stack[-1] = self.stack[-1](*arguments)

    def _make(self) -> None:
        self.stack.pop()
        self._make_any()

    def _make_with_names(self) -> None:
        del self.stack[-2:]
        self._make_any()

    def _make_any(self) -> None:
        if not isinstance(self.stack[-1], type):
            raise pickle.UnpicklingError(f"its pickle makes an object of {_kind(self.stack[-1])}, which is no type")
        self.stack[-1] = self.stack[-1]()

    def _set_items(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], dict | Placeholder):
            raise pickle.UnpicklingError(f"its pickle sets items of {_kind(self.stack[-1])}, which is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            _check_key(key)
            self.stack[-1][key] = value

    def _append_items(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], list | Placeholder):
            raise pickle.UnpicklingError(f"its pickle appends to {_kind(self.stack[-1])}, which is no list")
        self.stack[-1].extend(items)

    def _pop(self, count: int) -> list[Any]:
        if len(self.stack) <= count:
            raise pickle.UnpicklingError("its pickle takes values that it does not have")
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    # Sets are of an unknown type, as with protocol 2.
    dispatch |= {
        pickle.BUILD[0]: _build,
        pickle.REDUCE[0]: _call,
        pickle.NEWOBJ[0]: _make,
        pickle.NEWOBJ_EX[0]: _make_with_names,
        pickle.SETITEM[0]: lambda self: self._set_items(self._pop(2)),
        pickle.SETITEMS[0]: lambda self: self._set_items(self.pop_mark()),
        pickle.APPEND[0]: lambda self: self._append_items(self._pop(1)),
        pickle.APPENDS[0]: lambda self: self._append_items(self.pop_mark()),
        pickle.EMPTY_SET[0]: lambda self: self.append(Placeholder()),
        pickle.ADDITEMS[0]: lambda self: self.pop_mark(),
        pickle.FROZENSET[0]: lambda self: (self.pop_mark(), self.append(Placeholder())),
    }


def _kind(value: object) -> str:
    return f"the type {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"


def _check_key(key: object) -> None:
    """Raises UnpicklingError for a key whose hash takes long."""
    parts = [key]
    for count, part in enumerate(parts):
        if isinstance(part, list | tuple):
            parts += part[: _MAX_KEY_PARTS + 1]
        if count > _MAX_KEY_PARTS or (isinstance(part, int) and part.bit_length() > _MAX_KEY_BITS):
            raise pickle.UnpicklingError(f"its pickle has a key of more than {_MAX_KEY_PARTS} parts")


def _parts(value: object) -> Sequence[object]:
    if isinstance(value, Namespace):
        return (value.values,)
    if isinstance(value, Node | Config):
        return (value.value if isinstance(value, Node) else value.content,)
    if isinstance(value, dict):
        return (*value.keys(), *value.values())
    return value if isinstance(value, list) or type(value) is tuple else ()


def _check_size(value: object, limit: int) -> None:
    """Raises UnpicklingError for an object that is nested deeply, contains itself, or has more than `limit` parts,
    where a part counts as often as it is reached."""
    sizes: dict[int, int] = {}  # of the objects that were walked; 0 for those on the way to the current one
    way: list[tuple[object, Iterator[object]]] = [(value, iter(_parts(value)))]
    sizes[id(value)] = 0
    while way:
        current, parts = way[-1]
        for part in parts:
            if id(part) not in sizes:
                way.append((part, iter(_parts(part))))
                sizes[id(part)] = 0
                break
            if sizes[id(part)] == 0:
                raise pickle.UnpicklingError("its pickle has an object that contains itself")
        else:
            sizes[id(current)] = 1 + sum(sizes[id(part)] for part in _parts(current))
            way.pop()
        if len(way) > _MAX_DEPTH or sizes[id(current)] > limit:
            raise pickle.UnpicklingError(f"its pickle has an object of more than {_MAX_DEPTH} levels or {limit} parts")


def load(pickled: bytes, storage: Callable[[tuple[Any, ...]], Storage | Placeholder]) -> Any:
    """The saved object. `storage` is given each persistent reference: ("storage", type, key, device, elements, ...).

    Raises ConvertError for the names of a hostile file, and the errors in BROKEN.
    """
    opcodes = _count_opcodes(pickled)
    loaded = _Unpickler(pickled, storage).load()
    _check_size(loaded, _MAX_REPEATED * opcodes)
    return loaded


def _count_opcodes(pickled: bytes) -> int:
    count = 0
    for count, (opcode, argument, _) in enumerate(pickletools.genops(pickled), 1):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"its pickle has opcode {opcode.name}, which torch.save never writes")
        if opcode.name == "LONG_BINPUT" and argument > len(pickled):
            raise pickle.UnpicklingError(f"its pickle has memo index {argument}, which exceeds its length")
        if count > _MAX_OPCODES:
            raise pickle.UnpicklingError(f"its pickle has more than {_MAX_OPCODES} opcodes")
    return count
