"""Finds a model's weights in a checkpoint: the entry in which they lie, the prefix of their names, and their family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from longshort_convert import cvt, fairseq_roberta, language_model, roberta, text_classifier, vil
from longshort_convert.errors import ConvertError
from longshort_convert.weights import StateDict, is_buffer, is_tensor

# The tensor that each family's state dict has, and no other family's. A longer mark comes before one that ends it.
_MARKS = (
    (language_model.ARCHITECTURE, "in_emb.weight"),
    (text_classifier.ARCHITECTURE, "model.embeddings.word_embeddings.weight"),
    (roberta.FORM, "roberta.embeddings.LayerNorm.weight"),
    (roberta.FORM, "embeddings.LayerNorm.weight"),
    *((fairseq_roberta.FORM, side + fairseq_roberta.MARK) for side in fairseq_roberta.SIDES),
    (vil.ARCHITECTURE, "layer1.0.proj.weight"),
    (cvt.ARCHITECTURE, "stages.0.embed.weight"),
)
# Parts of names that wrappers of modules insert: torch.compile, FSDP, activation checkpointing.
_WRAPPERS = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.")
# The names of layer norms' tensors in checkpoints that were converted from TensorFlow, and in early ones of PyTorch.
_OLD_ENDINGS = {".LayerNorm.gamma": ".LayerNorm.weight", ".LayerNorm.beta": ".LayerNorm.bias"}
# Weights are looked for in dicts that are nested up to this depth.
_DEPTH = 3


@dataclass(frozen=True)
class FoundWeights:
    """`entry`: "model" or "state_dict", "" for the whole checkpoint; `prefix` was removed from the names."""

    entry: str
    prefix: str
    family: str
    state: StateDict

    @property
    def name(self) -> str:
        """The name for --weights."""
        return ":".join(part for part in (self.entry, self.prefix.removesuffix(".")) if part) or "."


def find_weights(checkpoint: object, choice: str | None) -> tuple[FoundWeights, list[str]]:
    """The weights that `choice` names, or else the only ones or those that are not a moving average; and the names of
    the others.

    Raises ConvertError if there are none, or if the choice is the user's.
    """
    found = [weights for entry, state in _dicts(checkpoint, "", _DEPTH) for weights in _weights(entry, state)]
    if not found:
        raise ConvertError(_nothing_found(checkpoint))
    names = [weights.name for weights in found]
    if choice is not None:
        chosen = [weights for weights in found if choice in (weights.name, weights.entry)]
        if len(chosen) != 1:
            raise ConvertError(f"--weights={choice}: the checkpoint has weights {', '.join(names)}")
    else:
        chosen = [weights for weights in found if not _is_average(weights.name)] if len(found) > 1 else found
        if len(chosen) != 1:
            raise ConvertError(f"the checkpoint has several weights; choose with --weights: {', '.join(names)}")
    return chosen[0], [name for name in names if name != chosen[0].name]


def _is_average(name: str) -> bool:
    return any(part in name.lower() for part in ("ema", "average", "swa"))


def _dicts(value: object, entry: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The dicts in the checkpoint that hold tensors, with the names of their entries."""
    if not isinstance(value, Mapping) or depth < 0:
        return
    if any(is_tensor(content) for content in value.values()):
        yield entry, value
    for name, content in value.items():
        if isinstance(name, str):
            yield from _dicts(content, f"{entry}.{name}" if entry else name, depth - 1)


def _weights(entry: str, state: Mapping[str, Any]) -> Iterator[FoundWeights]:
    """The models whose weights lie in a dict: usually one; a copy that is an average may lie beside it."""
    if not any(_mark_of(_bare(str(name))) for name in state):
        return
    tensors = _without_wrappers(state)
    families = {name.removesuffix(mark[1]): mark[0] for name in tensors if (mark := _mark_of(name))}
    if roberta.FORM in families.values():  # the module that holds it may have the name `model`
        families = {prefix: family for prefix, family in families.items() if family != text_classifier.ARCHITECTURE}
    for prefix, family in families.items():
        state_of_prefix: dict[str, Any] = {}
        for name, tensor in tensors.items():
            of = max((other for other in families if name.startswith(other)), key=len, default=None)
            if of is None and is_buffer(tensor):
                continue
            if of is None:
                raise ConvertError(
                    f"tensor {name!r} is unknown: the names of the {family}'s tensors begin with {prefix!r}"
                )
            if of == prefix:
                state_of_prefix[name.removeprefix(prefix)] = tensor
        yield FoundWeights(entry, prefix, family, StateDict(state_of_prefix, prefix))


def _mark_of(name: str) -> tuple[str, str] | None:
    """The family of the tensor with this name, if it is its mark, and the mark."""
    return next((mark for mark in _MARKS if name == mark[1] or name.endswith(f".{mark[1]}")), None)


def _bare(name: str) -> str:
    for wrapper in _WRAPPERS:
        name = name.replace(wrapper, "")
    for old, new in _OLD_ENDINGS.items():
        if name.endswith(old):
            return name.removesuffix(old) + new
    return name


def _without_wrappers(state: Mapping[str, Any]) -> dict[str, Any]:
    """The tensors by today's names, without wrappers. Other values beside them, like an epoch, are left out."""
    tensors: dict[str, Any] = {}
    names: dict[str, str] = {}  # in the file
    for name, tensor in state.items():
        if not is_tensor(tensor) and "." not in str(name):
            continue
        if not isinstance(name, str):
            raise ConvertError(f"key {name!r} of the state dict is not a name")
        bare = _bare(name)
        if bare in tensors:
            raise ConvertError(f"tensors {names[bare]!r} and {name!r} are the same tensor of the model")
        tensors[bare], names[bare] = tensor, name
    return tensors


def _nothing_found(checkpoint: object) -> str:
    if not isinstance(checkpoint, Mapping):
        kind = type(checkpoint).__name__
        return f"the checkpoint is of type {kind}, not a dict; save the model's state_dict()"
    states = list(_dicts(checkpoint, "", _DEPTH))
    wanted = "; ".join(f"{family}: {mark}" for family, mark in _MARKS)
    if states:
        entry, state = states[0]
        names = ", ".join(str(name) for name in list(state)[:3])
        return f"the weights{f' in {entry}' if entry else ''} ({names}, ...) are of no known model ({wanted})"
    entries = ", ".join(f"{name} of type {type(value).__name__}" for name, value in list(checkpoint.items())[:8])
    return f"the checkpoint has no dict of tensors; its entries are {entries or 'none'}"
