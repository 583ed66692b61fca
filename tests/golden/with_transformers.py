"""What Hugging Face's `transformers` computes with a RoBERTa, in float64: `random` cases, and the `golden` ones.

tests/golden/run_transformers runs it.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
import torch
import transformers
from numpy.typing import NDArray
from reference import safetensors_file

from golden import roberta

GOLDEN = Path(__file__).parent / "text_classifier"
TEXTS = [
    ["The server loads a new version while it serves."],
    ["a"],
    [""],
    ["  two  spaces, a\ttab\nand a line; don't, we'll, I'm, 2026 and x² "],
    ["Größe, naïve café, Привет мир, 日本語のテキスト, \U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467!"],
    ["<s> looks like a special token </s>, and so does <mask>."],
    ["Is a longer memory slower?", "It costs cache and time in proportion."],
    ["", "An empty first document."],
]
Tensors = dict[str, NDArray]


def expected(
    model: Mapping[str, Any], weights: Mapping[str, NDArray], documents: Sequence[NDArray[np.int64]]
) -> Tensors:
    """Of each item: logits [classes] of a classifier; the last layer's first row [D], and the mean of its rows."""
    kind = roberta.architecture(model)
    network = getattr(transformers, kind)(transformers.RobertaConfig(**model, attn_implementation="eager")).eval()
    state = {name: torch.from_numpy(np.array(value)) for name, value in weights.items()}
    if kind == roberta.MASKED_LM:  # tied
        state["lm_head.decoder.weight"] = state["roberta.embeddings.word_embeddings.weight"]
        state["lm_head.decoder.bias"] = state["lm_head.bias"]
    network.load_state_dict(state, strict=True)
    network.double()
    encoder = network if kind == roberta.ENCODER else network.roberta
    found: dict[str, list[NDArray]] = {"first": [], "mean": []}
    for row in range(len(documents[0])):
        ids = torch.from_numpy(roberta.joined(model, [document[row] for document in documents]))[None]
        with torch.no_grad():
            rows = encoder(ids, attention_mask=torch.ones_like(ids)).last_hidden_state[0]
            found["first"].append(rows[0].numpy())
            found["mean"].append(rows.mean(dim=0).numpy())
            if kind == roberta.CLASSIFIER:
                logits = network(ids, attention_mask=torch.ones_like(ids)).logits[0]
                found.setdefault("logits", []).append(logits.numpy())
    return {name: np.stack(rows) for name, rows in found.items()}


def write_random(out: Path, seed: int, count: int) -> None:
    """Folders as save_pretrained writes them, each with the items and results as expected.safetensors."""
    for index in range(count):
        random = np.random.default_rng([seed, index])
        model = roberta.draw_config(random)
        weights = roberta.weights(model, random)
        write = roberta.write_folder if index % 3 else roberta.write_old_folder
        folder = write(out / f"{seed}-{index:03}", model, weights)
        documents = roberta.draw_documents(model, random)
        tensors = {f"input_ids_{document}": ids for document, ids in enumerate(documents)}
        safetensors_file.write(folder / "expected.safetensors", tensors | expected(model, weights, documents))


def write_case(
    name: str, note: str, model: dict[str, Any], lengths: Sequence[Sequence[int]], formula_seed: int | None = None
) -> None:
    """A case of form `text_classifier`, whose hyperparameters are Hugging Face's. Of a pair, each has its lengths."""
    random = np.random.default_rng([len(name), *name.encode()])
    case = GOLDEN / name
    case.mkdir(exist_ok=True)
    if formula_seed is None:
        weights = roberta.weights(model, random)
        safetensors_file.write(case / "model.safetensors", weights)
    else:
        weights = roberta.weights_by_formula(model, formula_seed)
    documents = [roberta.draw_ids(model, of_document, random) for of_document in lengths]
    found = expected(model, weights, documents)
    if len(documents) == 2:  # embeddings are of one document
        found = {"logits": found["logits"]}
    tensors = {name: value.astype(np.float32) for name, value in found.items()}
    tensors |= {f"input_ids_{document}": ids for document, ids in enumerate(documents)}
    safetensors_file.write(case / "io.safetensors", tensors)
    config = {
        "form": "text_classifier",
        "documents": len(documents),
        "note": note,
        "results": f"transformers {transformers.__version__}, float64, stored as float32",
        "hugging_face": model,
        "formula": None if formula_seed is None else {"seed": formula_seed},
        "weights_file": "model.safetensors" if formula_seed is None else None,
    }
    (case / "config.json").write_text(json.dumps(config, indent=1))


def _train_tokenizer() -> transformers.RobertaTokenizerFast:
    trained = tokenizers.ByteLevelBPETokenizer()
    pages = sorted(str(path) for path in (GOLDEN.parents[2] / "docs").glob("*.md"))
    trained.train(pages, vocab_size=420, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    with tempfile.TemporaryDirectory() as scratch:
        vocabulary, merges = trained.save_model(scratch)
        return transformers.RobertaTokenizerFast(vocab=vocabulary, merges=merges, model_max_length=126)


def write_texts_case() -> None:
    """A folder as save_pretrained writes it, with a tokenizer; texts and pairs, their ids and what is made of them."""
    case = GOLDEN / "roberta_texts"
    case.mkdir(exist_ok=True)
    if not (case / "tokenizer.json").is_file():  # what it learns changes with the pages
        _train_tokenizer().save_pretrained(case)
    tokenizer = transformers.RobertaTokenizerFast.from_pretrained(case)
    model = roberta.config(vocab_size=420, max_position_embeddings=130)
    random = np.random.default_rng(35)
    weights = roberta.weights(model, random)
    safetensors_file.write(case / "model.safetensors", weights)
    written = []
    for texts in TEXTS:
        documents = [np.array(tokenizer(text)["input_ids"], np.int64) for text in texts]
        whole = roberta.joined(model, documents)
        assert tokenizer(*texts)["input_ids"] == whole.tolist()
        found = expected(model, weights, [document[None] for document in documents])
        results = {name: [round(value, 9) for value in values[0].tolist()] for name, values in found.items()}
        written.append(json.dumps({"texts": texts, "ids": whole.tolist(), **results}, ensure_ascii=False))
    (case / "texts.json").write_text("[" + ",\n".join(written) + "]\n")
    (case / "hugging_face.json").write_text(json.dumps(model, indent=1))


def write_golden() -> None:
    write_texts_case()
    write_case("roberta", "lengths 64 (max), 1, 2, 37", roberta.config(), [[64, 1, 2, 37]])
    write_case(
        "roberta_pair",
        "pairs; two token types, of which the first counts; another epsilon; regression",
        roberta.config(
            id2label=roberta.labels(2), problem_type=roberta.REGRESSION, type_vocab_size=2, layer_norm_eps=1e-12
        ),
        [[30, 2, 11], [34, 3, 1]],
    )
    write_case(
        "roberta_multi_label",
        "five labels, padding id 4, one layer",
        roberta.config(
            id2label=roberta.labels(5), problem_type=roberta.MULTI, pad_token_id=4, num_hidden_layers=1, vocab_size=30
        ),
        [[9, 61, 20]],
    )
    write_case(
        "roberta_encoder",
        "an encoder without head",
        roberta.config(architectures=[roberta.ENCODER], hidden_size=16, num_attention_heads=2),
        [[64, 1, 33]],
    )
    base = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12}
    write_case(
        "roberta_base_formula",
        "RoBERTa-base with 1,000 ids; weights by formula",
        roberta.config(**base, max_position_embeddings=514, vocab_size=1000),
        [[512, 1, 130]],
        formula_seed=35,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("golden")
    random = commands.add_parser("random")
    random.add_argument("out", type=Path)
    random.add_argument("--seed", type=int, default=1)
    random.add_argument("--count", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.command == "golden":
        write_golden()
    else:
        write_random(arguments.out, arguments.seed, arguments.count)
    return 0


if __name__ == "__main__":
    sys.exit(main())
