#!/usr/bin/env python3
"""Makes a tokenizer.json of byte-level BPE from texts, for longshort-train text-classifier (--vocabulary).

Its special tokens are RoBERTa's, with the same ids: <s> 0, <pad> 1, </s> 2, <unk> 3; <mask> is 4. Needs `tokenizers`
(models/zoo/requirements.txt).
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def texts(path: Path) -> Iterator[str]:
    """Of JSON Lines the field `text`; of other files their lines."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"] if path.suffix == ".jsonl" else line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="texts, or JSON Lines if named *.jsonl")
    parser.add_argument("--ids", type=int, default=4000, help="number of ids (default: 4000)")
    parser.add_argument("--out", type=Path, required=True, help="the tokenizer.json to write")
    given = parser.parse_args()

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=given.ids,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((text for path in given.files for text in texts(path)), trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.save(str(given.out), pretty=False)
    print(f"{given.out}: {tokenizer.get_vocab_size()} ids")


if __name__ == "__main__":
    main()
