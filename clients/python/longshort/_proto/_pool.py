"""Builds the message classes from contract.binpb, the compiled proto files."""

from __future__ import annotations

from importlib import resources
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper


def _load() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    compiled = resources.files(__package__).joinpath("contract.binpb").read_bytes()
    for file in descriptor_pb2.FileDescriptorSet.FromString(compiled).file:  # in dependency order
        pool.Add(file)
    return pool


_POOL = _load()


def define(file: str, names: dict[str, Any]) -> None:
    """Adds the messages and enums of a proto file to a module's names, like a module that protoc generates."""
    described = _POOL.FindFileByName(file)
    for name, message in described.message_types_by_name.items():
        names[name] = message_factory.GetMessageClass(message)
    for name, enum in described.enum_types_by_name.items():
        names[name] = EnumTypeWrapper(enum)
        names.update({value.name: value.number for value in enum.values})
