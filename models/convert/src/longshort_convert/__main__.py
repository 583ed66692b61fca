"""python -m longshort_convert CHECKPOINT --out DIR"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from longshort_convert import fairseq, vocabulary
from longshort_convert.checkpoint import read_checkpoint
from longshort_convert.config import LanguageModelConfig
from longshort_convert.errors import ConvertError
from longshort_convert.safetensors import write_safetensors

_DESCRIPTION = """\
Turns an official fairseq checkpoint of a Transformer-LS language model into a model
directory that longshort-server loads: config.json, model.safetensors and, with --vocabulary,
vocabulary.txt. No code in the checkpoint is run. Weights keep their precision. What is not
understood is refused by name (exit code 2), and then nothing is written."""

_EPILOG = """\
example:
  python -m longshort_convert checkpoint_best.pt --vocabulary data-bin/enwik8/dict.txt --mem-len 32768 \\
    --out models/enwik8/1"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        print(convert(options))
    except (ConvertError, OSError) as error:
        print(f"longshort_convert: {error}", file=sys.stderr)
        return 2
    return 0


def convert(options: argparse.Namespace) -> str:
    """Writes the model directory and says what is in it. Raises ConvertError or OSError; then there is none."""
    if options.out.exists():
        raise ConvertError(f"{options.out}: is there already; remove it or choose another --out")
    checkpoint = read_checkpoint(options.checkpoint)
    try:
        fields = fairseq.read_hyperparameters(checkpoint)
        weights = fairseq.read_weights(checkpoint, fields)
    except ConvertError as error:
        raise ConvertError(f"{options.checkpoint}: {error}") from error
    vocabulary_size = weights["in_emb.weight"].values.shape[0]
    content, tokenizer = _vocabulary(options, vocabulary_size)
    config = _config(fields, options, vocabulary_size, tokenizer)
    config.check()
    _write_directory(options.out, config, weights, content)
    parameters = sum(weight.values.size for name, weight in weights.items() if name != "pos_emb.inv_freq")
    return (
        f"{options.out}: {config.layers} layers, width {config.model_width}, {parameters:,} parameters, "
        f"memory {config.memory_length}, segments of {config.segment_length}, vocabulary of {vocabulary_size} "
        f"(tokenizer {tokenizer})"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m longshort_convert",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "checkpoint", type=Path, metavar="CHECKPOINT", help="a file that fairseq saved, such as checkpoint_best.pt"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the model directory to make")
    parser.add_argument(
        "--vocabulary",
        type=Path,
        metavar="FILE",
        help="dict.txt of the training data; without it, the model takes and gives token ids only",
    )
    parser.add_argument(
        "--tokenizer",
        choices=(vocabulary.BYTES, vocabulary.CHARACTERS),
        help="what the symbols of --vocabulary are (default: bytes if all are decimal numbers, else characters)",
    )
    parser.add_argument(
        "--segment-length",
        type=_positive,
        default=256,
        metavar="L",
        help="tokens per segment; 256 is the official evaluation's (default: %(default)s)",
    )
    parser.add_argument(
        "--mem-len", type=_positive, metavar="M", help="tokens of memory (default: mem_len of the checkpoint)"
    )
    return parser


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def _vocabulary(options: argparse.Namespace, vocabulary_size: int) -> tuple[bytes | None, str]:
    """The content of vocabulary.txt, if there is one, and the tokenizer."""
    if options.vocabulary is None:
        if options.tokenizer is not None:
            raise ConvertError(f"--tokenizer={options.tokenizer} needs --vocabulary")
        return None, vocabulary.NO_TOKENIZER
    content = options.vocabulary.read_bytes()
    return content, vocabulary.check_vocabulary(content, str(options.vocabulary), vocabulary_size, options.tokenizer)


def _config(
    fields: fairseq.Hyperparameters, options: argparse.Namespace, vocabulary_size: int, tokenizer: str
) -> LanguageModelConfig:
    return LanguageModelConfig(
        layers=fields.n_layer,
        model_width=fields.d_model,
        heads=fields.n_head,
        feed_forward_width=fields.d_inner,
        chunk_size=fields.chunk_size,
        chunk_rank=fields.chunk_rank,
        window_length=fields.window_len,
        memory_length=options.mem_len if options.mem_len is not None else fields.mem_len,
        segment_length=options.segment_length,
        vocabulary_size=vocabulary_size,
        window_position_clamp=max(fields.clamp_len, 0),
        chunk_position_clamp=max(fields.cpos_clamp_len, 0),
        pre_layer_norm=fields.pre_ln,
        projection_bias=fields.use_bias,
        activation="gelu" if fields.use_gelu else "relu",
        tokenizer=tokenizer,
    )


def _write_directory(
    out: Path, config: LanguageModelConfig, weights: dict[str, fairseq.Weight], content: bytes | None
) -> None:
    """Makes the directory under another name beside `out` and renames it when it is whole."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f"{out.name}.partial-", dir=out.parent))
    try:
        partial.chmod(0o755)
        (partial / "config.json").write_text(config.to_json(), encoding="utf-8")
        write_safetensors(partial / "model.safetensors", weights)
        if content is not None:
            (partial / "vocabulary.txt").write_bytes(content)
        os.rename(partial, out)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


if __name__ == "__main__":
    sys.exit(main())
