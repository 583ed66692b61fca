"""Converts RoBERTa to a long-document encoder (docs/models/long_document_encoder.md).

The tensors have Hugging Face's names, with or without the prefix `roberta.`; those of a RoBERTa with long-short
attention are added under `attention.self`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from longshort_convert import long_short_start, text_classifier
from longshort_convert.errors import ConvertError
from longshort_convert.fields import Fields
from longshort_convert.hugging_face import Settings
from longshort_convert.weights import Shapes, StateDict, Weight, affine, norm

FORM = "roberta"

_PREFIX = "roberta."
_LANDMARKS, _SHORT, _LONG = "landmarks", "dual_norm_short", "dual_norm_long"
# Parts of a layer, by the names of the text classifier.
_LAYER = {
    "attention.self.query": "mha.W_q",
    "attention.self.key": "mha.W_k",
    "attention.self.value": "mha.W_v",
    f"attention.self.{_LANDMARKS}": "mha.dconv_fc",
    f"attention.self.{_SHORT}": "mha.dual_ln_s",
    f"attention.self.{_LONG}": "mha.dual_ln_l",
    "attention.output.dense": "mha.W_o",
    "attention.output.LayerNorm": "norm1",
    "intermediate.dense": "mlpblock.0",
    "output.dense": "mlpblock.3",
    "output.LayerNorm": "norm2",
}


@dataclass(frozen=True)
class Form:
    """What the user wants of the encoder. None: as the checkpoint has it."""

    window: int | None = None
    rank: int | None = None
    seed: int = 1
    max_length: int | None = None


@dataclass
class Encoder:
    """The tensors by the names of the text classifier, the labels, and what the user must know."""

    weights: dict[str, Weight]
    labels: tuple[str, ...] | None
    notes: list[str]


def convert(state: StateDict, settings: Settings, fields: Fields, form: Form) -> Encoder:
    """Completes the fields, which are those that the user gave. Raises ConvertError."""
    fields.refuse_unknown(text_classifier.FIELDS)
    source = _Source(state, settings)
    notes = list(settings.notes)
    weights = source.encoder_weights()
    if source.has_lm_head:
        notes.append("lm_head, the head of the masked language model, is dropped")
    derived = source.derived()
    if source.rank > 0 and form.rank not in (None, source.rank):
        raise ConvertError(f"--rank is {form.rank}, but the checkpoint has landmarks of rank {source.rank}")
    rows = derived["max_sequence_length"]
    if form.max_length is not None and form.max_length != rows:
        table = "model.embeddings.position_embeddings.weight"
        weights[table] = Weight(
            weights[table].type_name, long_short_start.repeated(weights[table].values, form.max_length)
        )
        derived["max_sequence_length"] = form.max_length
        if form.max_length > rows:
            notes.append(
                f"WARNING: positions {rows} to {form.max_length - 1} are copies of the {rows} of the checkpoint, as "
                "Longformer began: documents of more tokens need further training"
            )
    trained = derived["max_sequence_length"] if settings.window_size is None else settings.window_size
    window = trained if form.window is None else form.window
    fields.settle({"window_size": window})
    if form.rank and source.rank == 0:
        notes.append(
            f"WARNING: {form.rank} landmarks for each head begin with random projections (--seed={form.seed}), and "
            "keys and values with new norms: the model needs further training"
        )
        long_short_start.add_landmarks(weights, derived["layers"], settings.heads, form.rank, form.seed)
        derived |= {"projection_rank": form.rank, "dual_norm": True}
    elif window < min(trained, derived["max_sequence_length"] - 1):
        notes.append(
            f"WARNING: documents of more than {window + 1} tokens are read in windows of {window}, unlike in training: "
            "the model needs further training"
        )
    fields.settle(derived)
    fields.default({"problem_type": _problem_type(settings, derived["classes"]), "tokenizer": "none", "documents": 1})
    fields.choice("problem_type", text_classifier.PROBLEM_TYPES)
    text_classifier.check(fields)
    text_classifier.drop_defaults(fields)
    _check_shapes(weights, text_classifier.tensor_shapes(fields))
    labels = settings.labels
    if labels is not None and len(labels) != derived["classes"]:
        if derived["classes"] > 0:
            raise ConvertError(
                f"{settings.where}: id2label has {len(labels)} classes, but the tensors have {derived['classes']}"
            )
        labels = None
    return Encoder(weights, labels, notes)


def _problem_type(settings: Settings, classes: int) -> str:
    """As transformers chooses where a config does not say."""
    if settings.problem_type is not None and classes > 0:
        return settings.problem_type
    return "regression" if classes == 1 else "single_label_classification"


def _check_shapes(weights: dict[str, Weight], shapes: Shapes) -> None:
    """What is written must be what the server reads."""
    made = {name: weight.values.shape for name, weight in weights.items()}
    if made != shapes:
        raise AssertionError(f"tensors {sorted(made.items() ^ shapes.items())} differ from those of the config")


class _Source:
    """The checkpoint's tensors, checked against its config."""

    def __init__(self, state: StateDict, settings: Settings) -> None:
        self._state = state
        self._settings = settings
        self._prefix = _PREFIX if f"{_PREFIX}embeddings.LayerNorm.weight" in state else ""
        self.vocabulary_size, self.width = state.shape(f"{self._prefix}embeddings.word_embeddings.weight", 2)
        self.position_rows, _ = state.shape(f"{self._prefix}embeddings.position_embeddings.weight", 2)
        self.types, _ = state.shape(f"{self._prefix}embeddings.token_type_embeddings.weight", 2)
        names = set(state.names())
        self.layers = sum(f"{self._layer(layer)}output.dense.weight" in names for layer in range(len(names)))
        if self.layers == 0:
            raise ConvertError(f"tensor {self._layer(0)}output.dense.weight is missing")
        first = self._layer(0)
        self.feed_forward_width, _ = state.shape(f"{first}intermediate.dense.weight", 2)
        self.rank, self.dual_norm = 0, f"{first}attention.self.{_LONG}.weight" in state
        if self.width % settings.heads != 0:
            raise ConvertError(f"num_attention_heads is {settings.heads}, which does not divide width {self.width}")
        landmarks = f"{first}attention.self.{_LANDMARKS}.weight"
        if landmarks in state:
            rows, _ = state.shape(landmarks, 2)
            if rows == 0 or rows % settings.heads != 0:
                raise ConvertError(
                    f"tensor {landmarks} has {rows} rows, not a multiple of num_attention_heads {settings.heads}"
                )
            self.rank = rows // settings.heads
        self.has_lm_head = any(name.startswith("lm_head.") for name in names)
        self._has_head = any(name.startswith("classifier.") for name in names)
        if settings.has_head is not None and settings.has_head != self._has_head:
            has = "has no" if settings.has_head else "has"
            raise ConvertError(
                f"{settings.where}: architectures and tensors differ: the checkpoint {has} classifier.dense"
            )
        self.classes = state.shape("classifier.out_proj.weight", 2)[0] if self._has_head else 0
        if self._has_head and self.classes == 0:
            raise ConvertError("tensor classifier.out_proj.weight has no rows")

    def derived(self) -> dict[str, object]:
        """The fields of config.json, with a window that covers every document."""
        settings = self._settings
        rows = self.position_rows - settings.ids.padding - 1
        sizes = {"model_width": self.width, "feed_forward_width": self.feed_forward_width, "layers": self.layers}
        sizes |= {"vocabulary_size": self.vocabulary_size, "position_rows": self.position_rows}
        for name, value in (settings.sizes or {}).items():
            if sizes[name] != value:
                raise ConvertError(f"{settings.where}: {name} is {value}, but by the tensors it is {sizes[name]}")
        if rows < 1:
            raise ConvertError(
                f"the position table has {self.position_rows} rows, and none behind that of pad_token_id "
                f"{settings.ids.padding}"
            )
        for name, value in (("pad_token_id", settings.ids.padding), ("eos_token_id", settings.ids.separator)):
            if value >= self.vocabulary_size:
                raise ConvertError(f"{settings.where}: {name} is {value}, but there are {self.vocabulary_size} ids")
        del sizes["position_rows"]
        return {
            "architecture": text_classifier.ARCHITECTURE,
            **sizes,
            "heads": settings.heads,
            "projection_rank": self.rank,
            "max_sequence_length": rows,
            "cls": "first_token",
            "normalized_cls": False,
            "value_convolution": 0,
            "tied_layers": False,
            "classes": self.classes,
            "layer_norm": "after",
            "layer_norm_epsilon": settings.layer_norm_epsilon,
            "dual_norm": self.dual_norm,
            "padding_id": settings.ids.padding,
            "separator_id": settings.ids.separator,
            "head": "tanh",
        }

    def encoder_weights(self) -> dict[str, Weight]:
        """By the names of the text classifier. Raises ConvertError for tensors that are missing, unknown or wrong."""
        unused = (f"{self._prefix}pooler.", "lm_head.")
        for name in self._state.names():
            if name.startswith(unused):
                self._state.pop(name)
        taken = self._state.take(self._shapes())
        weights = {ours: taken[theirs] for theirs, ours in self._names()}
        positions = taken[f"{self._prefix}embeddings.position_embeddings.weight"]
        kind = taken[f"{self._prefix}embeddings.token_type_embeddings.weight"]
        weights["model.embeddings.position_embeddings.weight"] = _positions(
            positions, kind, self._settings.ids.padding + 1
        )
        return weights

    def _layer(self, layer: int) -> str:
        return f"{self._prefix}encoder.layer.{layer}."

    def _shapes(self) -> Shapes:
        embeddings = f"{self._prefix}embeddings."
        shapes: Shapes = {
            f"{embeddings}word_embeddings.weight": (self.vocabulary_size, self.width),
            f"{embeddings}position_embeddings.weight": (self.position_rows, self.width),
            f"{embeddings}token_type_embeddings.weight": (self.types, self.width),
            **norm(f"{embeddings}LayerNorm", self.width),
        }
        inner, rows = self.feed_forward_width, self.rank * self._settings.heads
        for layer in range(self.layers):
            prefix = self._layer(layer)
            for part in ("self.query", "self.key", "self.value", "output.dense"):
                shapes |= affine(f"{prefix}attention.{part}", self.width, self.width)
            if self.rank > 0:
                shapes |= affine(f"{prefix}attention.self.{_LANDMARKS}", rows, self.width)
            for part in (_SHORT, _LONG) if self.dual_norm else ():
                shapes |= norm(f"{prefix}attention.self.{part}", self.width)
            shapes |= affine(f"{prefix}intermediate.dense", inner, self.width)
            shapes |= affine(f"{prefix}output.dense", self.width, inner)
            for part in ("attention.output.LayerNorm", "output.LayerNorm"):
                shapes |= norm(prefix + part, self.width)
        if self._has_head:
            shapes |= affine("classifier.dense", self.width, self.width)
            shapes |= affine("classifier.out_proj", self.classes, self.width)
        return shapes

    def _names(self) -> Iterator[tuple[str, str]]:
        """Names in the checkpoint and in the model, of all tensors but the position table."""
        embeddings = f"{self._prefix}embeddings."
        yield f"{embeddings}word_embeddings.weight", "model.embeddings.word_embeddings.weight"
        parts = {f"{embeddings}LayerNorm": "model.embeddings.norm"}
        for layer in range(self.layers):
            for theirs, ours in _LAYER.items():
                if (ours != "mha.dconv_fc" or self.rank > 0) and ("dual_ln" not in ours or self.dual_norm):
                    parts[self._layer(layer) + theirs] = f"model.transformer_{layer}.{ours}"
        if self._has_head:
            parts |= {"classifier.dense": "seq_classifer.mlpblock.0", "classifier.out_proj": "seq_classifer.mlpblock.2"}
        for theirs, ours in parts.items():
            for kind in ("weight", "bias"):
                yield f"{theirs}.{kind}", f"{ours}.{kind}"


def _positions(positions: Weight, types: Weight, offset: int) -> Weight:
    """The rows that tokens read, with the first token type's row added: RoBERTa's tokens all have it."""
    rows = positions.values[offset:]
    first = long_short_start.numbers(types)[0]
    if not first.any():
        return Weight(positions.type_name, np.ascontiguousarray(rows))
    return Weight("float32", long_short_start.numbers(Weight(positions.type_name, rows)) + first)
