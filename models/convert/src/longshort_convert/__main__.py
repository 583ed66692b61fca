"""python -m longshort_convert CHECKPOINT --out DIR"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from longshort_convert import classifier, fairseq_roberta, hugging_face, language_model, roberta, vocabulary
from longshort_convert.errors import ConvertError
from longshort_convert.find_weights import FoundWeights, find_weights
from longshort_convert.given_fields import preset_names
from longshort_convert.model_files import ModelFiles, write_directory
from longshort_convert.weights import is_tensor
from longshort_convert.weights_files import read_weights_files

_DESCRIPTION = """\
Converts a checkpoint of a Transformer-LS model to a model directory that longshort-server
loads: config.json, model.safetensors and, if given, vocabulary.txt, tokenizer.json and labels.txt.
The names of the tensors determine its kind: language model (fairseq), text classifier (Long
Range Arena), ViL-LS (ImageNet), CvT*-LS, or long-document encoder: a RoBERTa of Hugging Face (a
folder with config.json) or of fairseq. Prefixes (module., _orig_mod., Lightning's) are removed.
The weights may lie in an entry (model, state_dict, net, ema, ...); --weights chooses between
several. Formats:

  a file of torch.save    with any pickle protocol from 2 to 5, or as PyTorch wrote it before 1.6
  a safetensors file
  several files           their *.index.json, one of them, or the directory

The converter runs no code in the checkpoint: values of unknown types beside the weights are
skipped. Weights keep their precision. If the converter does not know a tensor, it names it,
writes nothing, and exits with 2."""

_EPILOG = """\
Only fairseq's checkpoints contain hyperparameters. For other checkpoints, those that do not follow from the tensors
come from --preset, --config and --set. --set overrides --config, which overrides --preset. A value that contradicts
the tensors is an error. Without a preset, these are required:

  text classifier   heads, window_size, cls (none, vocabulary, all_layers, last_layer); layers, if they are tied;
                    tokenizer (none, bytes_plus_one, listops_2020, listops_2021, pixels; default: none)
  ViL-LS            stages (the architecture string), image_size; average_pooling (default: false)
  CvT*-LS           stage_heads, window_sizes
  language model    chunk_size, window_length, memory_length, window_position_clamp, chunk_position_clamp,
                    pre_layer_norm, activation

A RoBERTa is computed exactly as it is, unless --window, --rank or --max-length change it. The converter then says which
parts begin with copied or random weights, and need further training.

examples:
  python -m longshort_convert roberta-base --out models/roberta/1
  python -m longshort_convert roberta-base --window 256 --rank 64 --max-length 4096 --out models/ls-base/1
  python -m longshort_convert checkpoint_best.pt --vocabulary data-bin/enwik8/dict.txt --mem-len 32768 \\
    --out models/enwik8/1
  python -m longshort_convert msvit_medium.pth --preset vil-ls-medium-224 --labels imagenet.txt --out models/vil/1
  python -m longshort_convert listops.model --preset lra-listops --set window_size=16 --set projection_rank=2 \\
    --vocabulary tokens.txt --out models/listops/1

presets: """


_ROBERTA_OPTIONS = ("window", "rank", "seed", "max_length", "head")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        summary, notes = convert(options)
    except (ConvertError, OSError) as error:
        print(f"longshort_convert: {error}", file=sys.stderr)
        return 2
    print(summary)
    for note in notes:
        print(f"longshort_convert: {note}", file=sys.stderr)
    return 0


def convert(options: argparse.Namespace) -> tuple[str, Sequence[str]]:
    """Writes the model directory and returns a summary, and what the user must know.

    Raises ConvertError or OSError, and then writes nothing.
    """
    if options.out.exists():
        raise ConvertError(f"{options.out} already exists; remove it or choose another --out")
    files, ignored = _read(options)
    write_directory(options.out, files)
    left_out = f"; ignored entries of the checkpoint: {', '.join(ignored)}" if ignored else ""
    return f"{options.out}: {files.summary}{left_out}", files.notes


def _read(options: argparse.Namespace) -> tuple[ModelFiles, list[str]]:
    """The model, and the entries of the checkpoint that are not part of it."""
    path = options.checkpoint
    folder = path if path.is_dir() else path.parent
    hugging_face.refuse_other_models(options.config or folder / hugging_face.CONFIG)
    content = read_weights_files(path)
    try:
        found, others = find_weights(content, options.weights)
        if found.family == language_model.ARCHITECTURE:
            files = language_model.convert(found.state, content, _language_model_options(options))
        elif found.family in (roberta.FORM, fairseq_roberta.FORM):
            files = classifier.convert_roberta(
                found.family, found.state, content, _classifier_options(options, "preset"), _roberta_options(options)
            )
        else:
            files = classifier.convert(found.family, found.state, _classifier_options(options, *_ROBERTA_OPTIONS))
    except ConvertError as error:
        raise ConvertError(f"{path}: {error}") from error
    return files, _ignored(content, found, others)


def _ignored(content: Mapping[str, Any], found: FoundWeights, others: list[str]) -> list[str]:
    """The names of other weights in the checkpoint, and of its entries that were not read."""
    used = {found.entry.partition(".")[0]}
    if found.family in (language_model.ARCHITECTURE, fairseq_roberta.FORM):
        used |= {"args", "cfg"}
    entries = [str(name) for name in content if found.entry and str(name) not in used]
    beside = [str(name) for name, value in content.items() if not found.entry and not is_tensor(value)]
    return entries + beside + [name for name in others if name not in entries]


def _classifier_options(options: argparse.Namespace, *refused: str) -> classifier.ClassifierOptions:
    _refuse(options, "a classifier", "tokenizer", "segment_length", "mem_len")
    _refuse(options, "a RoBERTa" if "preset" in refused else "a classifier that is no RoBERTa", *refused)
    return classifier.ClassifierOptions(
        preset=options.preset,
        config=options.config,
        assignments=options.assignments or (),
        vocabulary=options.vocabulary,
        labels=options.labels,
        tokenizer=options.bpe,
    )


def _roberta_options(options: argparse.Namespace) -> classifier.RobertaOptions:
    _refuse(options, "a RoBERTa", "vocabulary")
    if options.seed is not None and not options.rank:
        raise ConvertError("--seed is the random seed of the landmarks' projections: it needs --rank")
    form = roberta.Form(options.window, options.rank, 1 if options.seed is None else options.seed, options.max_length)
    return classifier.RobertaOptions(options.checkpoint, form, options.head)


def _language_model_options(options: argparse.Namespace) -> language_model.LanguageModelOptions:
    _refuse(options, "a language model", "preset", "labels", "bpe", *_ROBERTA_OPTIONS)
    return language_model.LanguageModelOptions(
        vocabulary=options.vocabulary,
        tokenizer=options.tokenizer,
        segment_length=options.segment_length,
        memory_length=options.mem_len,
        config=options.config,
        assignments=options.assignments or (),
    )


def _refuse(options: argparse.Namespace, kind: str, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            flag = "set" if name == "assignments" else name.replace("_", "-")
            raise ConvertError(f"--{flag} is not valid for {kind}, and the checkpoint is of {kind}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m longshort_convert",
        description=_DESCRIPTION,
        epilog=_EPILOG + ", ".join(preset_names()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "checkpoint",
        type=Path,
        metavar="CHECKPOINT",
        help="a file of torch.save or safetensors; or an index, a shard or the directory of several",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the model directory to create")
    parser.add_argument(
        "--weights",
        metavar="NAME",
        help="which of a checkpoint's weights to convert, for example model_ema (default: not a moving average)",
    )
    parser.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="language model: dict.txt of the training data; without it, the model reads and writes token ids only. "
        "ListOps: the tokens, one per line; the first has id 1",
    )
    _add_language_model_options(parser.add_argument_group("language models"))
    _add_classifier_options(parser.add_argument_group("hyperparameters and classifiers"))
    _add_roberta_options(parser.add_argument_group("RoBERTa"))
    return parser


def _add_language_model_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tokenizer",
        choices=(vocabulary.BYTES, vocabulary.CHARACTERS),
        help="kind of the symbols in --vocabulary (default: bytes if all are decimal numbers, else characters)",
    )
    group.add_argument(
        "--segment-length",
        type=_positive,
        metavar="L",
        help=f"tokens per segment (default: {language_model.DEFAULT_SEGMENT_LENGTH}, as in the official evaluation)",
    )
    group.add_argument(
        "--mem-len", type=_positive, metavar="M", help="memory length in tokens (default: mem_len of the checkpoint)"
    )


def _add_classifier_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--preset", metavar="NAME", help="hyperparameters of a published model; the names are below")
    group.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="JSON file of hyperparameters, with their official names (num_head, window_size, pooling_mode, ...; arch, "
        "img_size, ...), or with those of config.json if it has the field architecture",
    )
    group.add_argument(
        "--set",
        action="append",
        dest="assignments",
        metavar="NAME=VALUE",
        help="a field of config.json; may be repeated; nested fields are set together, as JSON: "
        '--set \'preprocessing={"height": 32, "width": 32}\'',
    )
    group.add_argument("--labels", type=Path, metavar="FILE", help="names of the classes in order, one per line")


def _add_roberta_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--bpe",
        type=Path,
        metavar="PATH",
        help="byte-level BPE: a tokenizer.json; or a folder with it, with vocab.json and merges.txt, or with fairseq's "
        "dict.txt, encoder.json and vocab.bpe (default: the checkpoint's folder)",
    )
    group.add_argument(
        "--window",
        type=_positive,
        metavar="W",
        help="tokens of a segment; a token sees its segment and half a segment on each side (default: the maximum "
        "length, so that each token sees all)",
    )
    group.add_argument(
        "--rank", type=_natural, metavar="R", help="landmarks of a document, for each head (default: none)"
    )
    group.add_argument(
        "--seed", type=_natural, metavar="N", help="seed of the landmarks' random projections (default: 1)"
    )
    group.add_argument(
        "--max-length",
        type=_positive,
        metavar="N",
        help="positions: fewer than the checkpoint has, or more, which are copies (default: those of the checkpoint)",
    )
    group.add_argument("--head", metavar="NAME", help="which of the heads of a checkpoint of fairseq to convert")


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a natural number")
    return int(text)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
