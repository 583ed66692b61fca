"""Loads the pickles of torch.save as plain values and tensors, and runs no code that they name.

Objects of other types become placeholders: nothing of them is built, and their content is dropped. The pickle builds
only immutable objects (tuples), plain data and placeholders, so that no opcode can change the set of known names.
"""

from __future__ import annotations

import collections
import io
import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import Any

from longshort_convert.errors import ConvertError
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

# The opcodes of pickle protocols 2 to 5, except those of extensions, of buffers outside the pickle, and of old classes.
# None of them takes more memory than the pickle's length.
_OPCODE_NAMES = """
    PROTO FRAME STOP MARK POP POP_MARK DUP GLOBAL STACK_GLOBAL REDUCE NEWOBJ NEWOBJ_EX BUILD BINPERSID BINPUT
    LONG_BINPUT MEMOIZE BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 LONG4 BINFLOAT
    BINUNICODE SHORT_BINUNICODE BINUNICODE8 BINSTRING SHORT_BINSTRING BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8
    EMPTY_TUPLE TUPLE1 TUPLE2 TUPLE3 TUPLE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS EMPTY_SET ADDITEMS
    FROZENSET
"""
_OPCODES = frozenset(_OPCODE_NAMES.split())

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


class Namespace:
    """Stands for argparse.Namespace: the values it was saved with."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("the content of a Namespace is not a dict")
        self.values = state


class Placeholder:
    """Stands for an object of an unknown type, and drops what the pickle puts into it."""

    __slots__ = ()

    def __new__(cls, *_: object, **__: object) -> Placeholder:
        return object.__new__(cls)

    def __init__(self, *_: object, **__: object) -> None: ...

    def __call__(self, *_: object, **__: object) -> Placeholder:
        return self

    def __setstate__(self, _: object) -> None: ...

    def __setitem__(self, _: object, __: object) -> None: ...

    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...

    def add(self, _: object) -> None: ...


def placeholder_type(name: str) -> type[Placeholder]:
    return type(name, (Placeholder,), {"__slots__": ()})


class _Dict(dict[Any, Any]):
    """Stands for a subclass of dict: its items, without what else it was made from."""

    def __init__(self, *_: object) -> None:
        super().__init__()


class _Counter(_Dict):
    """Stands for collections.Counter, which is saved with its items as an argument."""

    def __init__(self, items: object = ()) -> None:
        super().__init__()
        self.update(items if isinstance(items, dict) else {})


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


_KNOWN_GLOBALS: dict[tuple[str, str], Any] = {
    ("argparse", "Namespace"): Namespace,
    ("builtins", "getattr"): _Attribute(),
    ("__builtin__", "getattr"): _Attribute(),
    ("collections", "OrderedDict"): collections.OrderedDict,
    ("collections", "defaultdict"): _Dict,
    ("collections", "Counter"): _Counter,
    ("torch._tensor", "_rebuild_from_type_v2"): _RebuildFromType(),
    ("torch._utils", "_rebuild_parameter"): _RebuildParameter(),
    ("torch._utils", "_rebuild_parameter_with_state"): _RebuildParameter(),
    ("torch._utils", "_rebuild_tensor"): _RebuildTensor(),
    ("torch._utils", "_rebuild_tensor_v2"): _RebuildTensor(),
    ("torch.nn.parameter", "Parameter"): _RebuildParameter(),
    **{("torch", name): type_ for name, type_ in STORAGE_TYPES.items()},
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, pickled: bytes, storage: Callable[[tuple[Any, ...]], Storage | Placeholder]) -> None:
        super().__init__(io.BytesIO(pickled), encoding="latin1")
        self._storage = storage

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN_GLOBALS.get((module, name))
        if known is not None:
            return known
        builtin = module in ("builtins", "__builtin__")
        if module.partition(".")[0] in _HOSTILE_MODULES or (builtin and name in _HOSTILE_BUILTINS):
            raise ConvertError(f"refers to {module}.{name}, which the converter does not run; do not load this file")
        return placeholder_type(f"{module}.{name}")

    def persistent_load(self, pid: Any) -> Storage | Placeholder:
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("a persistent reference is not to a storage")
        return self._storage(pid)


def load(pickled: bytes, storage: Callable[[tuple[Any, ...]], Storage | Placeholder]) -> Any:
    """The saved object. `storage` is given each persistent reference: ("storage", type, key, device, elements, ...).

    Raises ConvertError for the names of a hostile file, and the errors in BROKEN.
    """
    check_opcodes(pickled)
    return _Unpickler(pickled, storage).load()


def check_opcodes(pickled: bytes) -> None:
    for opcode, argument, _ in pickletools.genops(pickled):
        if opcode.name not in _OPCODES:
            raise pickle.UnpicklingError(f"its pickle has opcode {opcode.name}, which torch.save never writes")
        if opcode.name == "LONG_BINPUT" and argument > len(pickled):
            raise pickle.UnpicklingError(f"its pickle has memo index {argument}, which exceeds its length")
