"""Types of carried columns: each run has one schema, which it determines from all inputs before the first row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pyarrow as pa  # type: ignore[import-untyped]


class NoCommonType(Exception):
    """Two types have no type that holds the values of both."""


def is_kind(type: pa.DataType, *kinds: str) -> bool:
    """Whether the type is of one of these kinds of pyarrow.types. Older versions of pyarrow lack some."""
    return any(check(type) for kind in kinds if (check := getattr(pa.types, f"is_{kind}", None)) is not None)


def is_string(type: pa.DataType) -> bool:
    return is_kind(type, "string", "large_string", "string_view")


def is_binary(type: pa.DataType) -> bool:
    return is_kind(type, "binary", "large_binary", "binary_view", "fixed_size_binary")


def is_list_view(type: pa.DataType) -> bool:
    return is_kind(type, "list_view", "large_list_view")


def has_list_view(type: pa.DataType) -> bool:
    if is_kind(type, "struct"):
        return any(has_list_view(field.type) for field in type)
    if is_kind(type, "map"):
        return has_list_view(type.key_type) or has_list_view(type.item_type)
    return is_list_view(type) or (is_list(type) and has_list_view(type.value_type))


def is_list(type: pa.DataType) -> bool:
    return is_list_view(type) or is_kind(type, "list", "large_list", "fixed_size_list")


def plain(type: pa.DataType) -> pa.DataType:
    """The type of the same values without dictionaries, views, 64-bit offsets and extensions."""
    if is_kind(type, "dictionary"):
        return plain(type.value_type)
    if isinstance(type, pa.BaseExtensionType):
        return plain(type.storage_type)
    if is_string(type):
        return pa.string()
    if is_kind(type, "large_binary", "binary_view"):
        return pa.binary()
    if is_kind(type, "fixed_size_list"):
        return pa.list_(plain(type.value_type), type.list_size)
    if is_list(type):
        return pa.list_(plain(type.value_type))
    if is_kind(type, "map"):
        return pa.map_(plain(type.key_type), plain(type.item_type))
    if is_kind(type, "struct"):
        return pa.struct([pa.field(field.name, plain(field.type)) for field in type])
    return type


def is_text(type: pa.DataType) -> bool:
    """Whether a column of this type may hold documents: strings, bytes or lists of token ids; or nothing but nulls."""
    bare = plain(type)
    if is_list(bare):
        return is_kind(bare.value_type, "integer", "null")
    return is_string(bare) or is_binary(bare) or is_kind(bare, "null")


def duplicate(type: pa.DataType) -> str | None:
    """The name that two fields of a struct in this type have; None if there is none."""
    if is_kind(type, "struct"):
        names = Counter(field.name for field in type)
        return next((name for name, count in names.items() if count > 1), None) or _first(field.type for field in type)
    if is_kind(type, "map"):
        return _first((type.key_type, type.item_type))
    return duplicate(type.value_type) if is_list(type) else None


def _first(types: Iterable[pa.DataType]) -> str | None:
    return next((name for type in types if (name := duplicate(type)) is not None), None)


def common_schema(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The columns of all schemas, in the order of their first appearance. A column whose values have no common type
    becomes text."""
    types: dict[str, pa.DataType] = {}
    mixed: set[str] = set()
    for schema in schemas:
        for field in schema:
            if field.name in mixed:
                continue
            try:
                types[field.name] = common(types.get(field.name, pa.null()), field.type)
            except NoCommonType:
                mixed.add(field.name)
                types[field.name] = pa.string()
    return pa.schema(list(types.items()))


def common(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The narrowest type of the values of both plain types. Raises NoCommonType."""
    if one.equals(other) or is_kind(other, "null"):
        return one
    if is_kind(one, "null"):
        return other
    if is_kind(one, "struct") and is_kind(other, "struct"):
        return _common_struct(one, other)
    if is_kind(one, "map") and is_kind(other, "map"):
        return pa.map_(common(one.key_type, other.key_type), common(one.item_type, other.item_type))
    if is_list(one) and is_list(other):
        return pa.list_(common(one.value_type, other.value_type))
    if (is_string(one) or is_binary(one)) and (is_string(other) or is_binary(other)):
        return pa.binary()
    if is_kind(one, "timestamp") and is_kind(other, "timestamp") and one.tz == other.tz:
        units = ("s", "ms", "us", "ns")
        return pa.timestamp(max(one.unit, other.unit, key=units.index), one.tz)
    if is_kind(one, "date") and is_kind(other, "date"):
        return pa.date64()
    return _common_number(one, other)


def _common_struct(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    types = {field.name: field.type for field in one}
    for field in other:
        types[field.name] = common(types.get(field.name, pa.null()), field.type)
    return pa.struct(list(types.items()))


def _common_number(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    both = (one, other)
    if all(is_kind(type, "decimal") for type in both):
        scale = max(type.scale for type in both)
        digits = scale + max(type.precision - type.scale for type in both)
        if digits <= 76:
            return pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    elif all(is_kind(type, "floating") for type in both):
        return max(both, key=lambda type: type.bit_width)
    elif all(is_kind(type, "integer", "floating") for type in both):
        if any(is_kind(type, "floating") for type in both):
            return pa.float64()
        if is_kind(one, "signed_integer") == is_kind(other, "signed_integer"):
            return max(both, key=lambda type: type.bit_width)
        unsigned = max(type.bit_width for type in both if not is_kind(type, "signed_integer"))
        if unsigned < 64:
            width = max(2 * unsigned, *(type.bit_width for type in both))
            return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[width]
    raise NoCommonType(f"{one} and {other}")
