"""What stands for the objects in a checkpoint that are not plain data. None of it runs code.

argparse.Namespace         Namespace
omegaconf.DictConfig       Config, a mapping of plain values; a ListConfig's content is not read
omegaconf's AnyNode, ...   Node, which a Config shows as its value
numpy.int64(3), ...        3
a dict's subclass          Dict
an object of another type  Placeholder
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

_NUMPY_SCALARS = ("b1", *(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8")
_BYTE_ORDERS = ("<", ">", "|", "=")
# The most bytes of a numpy scalar.
_MAX_SCALAR_BYTES = 16
# OmegaConf's value of a field that must still be given.
_NOT_GIVEN = "???"


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

    def __repr__(self) -> str:
        return f"<an object of type {type(self).__name__}>"

    def __call__(self, *_: object, **__: object) -> Placeholder:
        return self

    def __setstate__(self, _: object) -> None: ...

    def __setitem__(self, _: object, __: object) -> None: ...

    def append(self, _: object) -> None: ...

    def extend(self, _: object) -> None: ...

    def add(self, _: object) -> None: ...


def placeholder_type(name: str) -> type[Placeholder]:
    return type(name, (Placeholder,), {"__slots__": ()})


class Dict(dict[Any, Any]):
    """Stands for a subclass of dict: its items, without what else it was made from."""

    def __init__(self, *_: object) -> None:
        super().__init__()


class Counter(Dict):
    """Stands for collections.Counter, which is saved with its items as an argument."""

    def __init__(self, items: object = ()) -> None:
        super().__init__()
        self.update(items if isinstance(items, dict) else {})


class Node:
    """Stands for a value of a Config."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, dict):
            raise pickle.UnpicklingError("the content of a node of OmegaConf is not a dict")
        self.value = state.get("_val")


class Config(Mapping[Any, Any]):
    """Stands for omegaconf.DictConfig: its fields without those that are not given. A field that refers to another one
    is the text of the reference, "${model.d_model}"."""

    __slots__ = ("content",)

    def __init__(self) -> None:
        self.content: dict[Any, Any] = {}

    def __setstate__(self, state: object) -> None:
        content = state.get("_content") if isinstance(state, dict) else None
        self.content = content if isinstance(content, dict) else {}

    def __getitem__(self, name: Any) -> Any:
        value = _plain(self.content[name])
        if isinstance(value, str) and value == _NOT_GIVEN:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[Any]:
        return (name for name in self.content if name in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<omegaconf.dictconfig.DictConfig of {len(self.content)} fields>"


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Node) else value


class NumpyType:
    """Stands for numpy.dtype. `name` is None for types whose scalars are no plain numbers."""

    __slots__ = ("name", "order")

    def __init__(self, name: object = None, *_: object) -> None:
        self.name = name if isinstance(name, str) and name in _NUMPY_SCALARS else None
        self.order = "<"

    def __repr__(self) -> str:
        return "<a type of numpy>" if self.name is None else f"<numpy's type {self.name}>"

    def __setstate__(self, state: object) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 1 else None
        if isinstance(order, str) and order in _BYTE_ORDERS:
            self.order = order


class NumpyScalar:
    """Stands for numpy.core.multiarray.scalar, which makes a number of its type and its bytes."""

    def __call__(self, type_: object = None, content: object = None, *_: object) -> object:
        if not isinstance(type_, NumpyType) or type_.name is None:
            return placeholder_type("numpy.scalar")()
        stored = content.encode("latin1") if isinstance(content, str) else content  # text: by Python 2
        if not isinstance(stored, bytes) or len(stored) != np.dtype(type_.name).itemsize:
            raise pickle.UnpicklingError(f"a number of numpy's type {type_.name} does not have its bytes")
        return np.frombuffer(stored, type_.order + type_.name)[0].item()


class EncodeText:
    """Stands for _codecs.encode, by which pickles of protocol 2 name bytes: short ones, as numpy's scalars have."""

    def __call__(self, text: object = None, encoding: object = None, *_: object) -> object:
        if not isinstance(text, str) or encoding != "latin1" or len(text) > _MAX_SCALAR_BYTES:
            return placeholder_type("bytes")()
        try:
            return text.encode("latin1")
        except UnicodeEncodeError as error:
            raise pickle.UnpicklingError("bytes are not those of Latin-1") from error
