#!/usr/bin/env python3
"""Writes a small, valid Llama model with random weights as a GGUF file; needs Python alone.

It is what the demo runs when no real model can be had, and what the end-to-end tests run on. Its
text means nothing, but every part is real: byte-level BPE with merges, grouped-query attention, an
untied head. The same arguments give the same bytes.
"""

import argparse
import random
import struct
import sys

HEAD_SIZE = 64
HEADS = 2
KV_HEADS = 1
WIDTH = HEAD_SIZE * HEADS
FEED_FORWARD = 256

# Types of the GGUF format: metadata values and tensor elements.
U32, F32_VALUE, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
TENSOR_TYPES = {"f32": 0, "f16": 1, "q8_0": 8}
ALIGNMENT = 32

SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = (
    "Ġ t|Ġ a|h e|i n|r e|o n|Ġt he|e r|Ġ s|a t|Ġ w|Ġ o|e n|Ġ c|i t|i s|a n|o r|e s|Ġ b|e d|Ġ f|"
    "in g|Ġ p|o u|Ġa n|a l|a r|Ġt o|Ġ m|Ġo f|Ġ in|Ġ d|Ġ h|Ġan d|i c|a s|l e|Ġt h|i on|o m|l l|"
    "en t|Ġ n|Ġ l|s t|Ġ re|v e|Ġ e|r o|l y|Ġb e|Ġ g|Ġ T|c t|Ġ S|i d|o t|Ġ I|u t|e t|Ġ A|Ġ is|Ġ on"
).split("|")


def byte_alphabet():
    """The printable character that stands for each byte in a byte-level vocabulary."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    alphabet, extra = {}, 256
    for byte in range(256):
        if byte in plain:
            alphabet[byte] = chr(byte)
        else:
            alphabet[byte] = chr(extra)
            extra += 1
    return alphabet


def vocabulary():
    """(tokens, the ids of those that print as plain text)."""
    alphabet = byte_alphabet()
    tokens = SPECIAL + [alphabet[byte] for byte in range(256)]
    tokens += [merge.replace(" ", "") for merge in MERGES]
    readable = [i for i, token in enumerate(tokens) if i >= len(SPECIAL) + 256]
    readable += [len(SPECIAL) + byte for byte in b"abcdefghijklmnopqrstuvwxyz,."]
    return tokens, set(readable)


def pack_string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def pack_value(kind, value):
    if kind == STRING:
        return pack_string(value)
    if kind == ARRAY:
        element, items = value
        return struct.pack("<IQ", element, len(items)) + b"".join(
            pack_value(element, item) for item in items
        )
    return struct.pack({U32: "<I", I32: "<i", F32_VALUE: "<f", BOOL: "<?"}[kind], value)


def pack_row(kind, row):
    """One row of weights in the file's element type."""
    if kind == "f32":
        return struct.pack(f"<{len(row)}f", *row)
    if kind == "f16":
        return struct.pack(f"<{len(row)}e", *row)
    blocks = []
    for begin in range(0, len(row), 32):
        block = row[begin : begin + 32]
        scale = max(map(abs, block)) / 127.0
        quants = [round(value / scale) if scale else 0 for value in block]
        blocks.append(struct.pack("<e32b", scale, *quants))
    return b"".join(blocks)


def metadata(name, layers, context, tokens):
    return [
        ("general.architecture", STRING, "llama"),
        ("general.name", STRING, name),
        ("llama.block_count", U32, layers),
        ("llama.context_length", U32, context),
        ("llama.embedding_length", U32, WIDTH),
        ("llama.feed_forward_length", U32, FEED_FORWARD),
        ("llama.attention.head_count", U32, HEADS),
        ("llama.attention.head_count_kv", U32, KV_HEADS),
        ("llama.attention.layer_norm_rms_epsilon", F32_VALUE, 1e-5),
        ("llama.rope.freq_base", F32_VALUE, 10000.0),
        ("llama.rope.dimension_count", U32, HEAD_SIZE),
        ("llama.vocab_size", U32, len(tokens)),
        ("tokenizer.ggml.model", STRING, "gpt2"),
        ("tokenizer.ggml.pre", STRING, "smollm"),
        ("tokenizer.ggml.tokens", ARRAY, (STRING, tokens)),
        ("tokenizer.ggml.token_type", ARRAY, (I32, [3 if t in SPECIAL else 1 for t in tokens])),
        ("tokenizer.ggml.merges", ARRAY, (STRING, MERGES)),
        ("tokenizer.ggml.bos_token_id", U32, 1),
        ("tokenizer.ggml.eos_token_id", U32, 2),
        ("tokenizer.ggml.unknown_token_id", U32, 0),
        ("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def tensors(rng, kind, layers, tokens, readable):
    """Yields (name, shape innermost first, element type, data)."""

    def matrix(name, rows, columns, scale):
        data = [pack_row(kind, [rng.gauss(0, scale(r)) for _ in range(columns)]) for r in range(rows)]
        return name, (columns, rows), kind, b"".join(data)

    def ones(name):
        return name, (WIDTH,), "f32", pack_row("f32", [1.0] * WIDTH)

    def plain(_row):
        return WIDTH**-0.5

    yield matrix("token_embd.weight", len(tokens), WIDTH, lambda row: 1.0)
    for layer in range(layers):
        block = f"blk.{layer}."
        yield ones(block + "attn_norm.weight")
        yield matrix(block + "attn_q.weight", WIDTH, WIDTH, plain)
        yield matrix(block + "attn_k.weight", KV_HEADS * HEAD_SIZE, WIDTH, plain)
        yield matrix(block + "attn_v.weight", KV_HEADS * HEAD_SIZE, WIDTH, plain)
        yield matrix(block + "attn_output.weight", WIDTH, WIDTH, plain)
        yield ones(block + "ffn_norm.weight")
        yield matrix(block + "ffn_gate.weight", FEED_FORWARD, WIDTH, plain)
        yield matrix(block + "ffn_up.weight", FEED_FORWARD, WIDTH, plain)
        yield matrix(block + "ffn_down.weight", WIDTH, FEED_FORWARD, plain)
    yield ones("output_norm.weight")
    # Small rows for whatever is not readable: its logits stay near 0, below the best letters and
    # syllables, so that the text can be looked at and never ends early.
    yield matrix(
        "output.weight", len(tokens), WIDTH, lambda row: (3.0 if row in readable else 0.01) * plain(row)
    )


def aligned(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


def build(kind, layers, context, seed):
    tokens, readable = vocabulary()
    fields = metadata(f"tiny random {kind}", layers, context, tokens)
    parts = list(tensors(random.Random(seed), kind, layers, tokens, readable))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(parts), len(fields))
    for key, value_type, value in fields:
        head += pack_string(key) + struct.pack("<I", value_type) + pack_value(value_type, value)
    offset, body = 0, []
    for name, shape, element, data in parts:
        head += pack_string(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        head += struct.pack("<IQ", TENSOR_TYPES[element], offset)
        body.append(aligned(data))
        offset += len(body[-1])
    return aligned(head) + b"".join(body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out")
    parser.add_argument("--type", choices=TENSOR_TYPES, default="f16", help="of the matrices")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--context", type=int, default=512, help="the model's context length")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.layers < 1 or args.context < 1:
        parser.error("expected --layers and --context of at least 1")
    data = build(args.type, args.layers, args.context, args.seed)
    with open(args.out, "wb") as file:
        file.write(data)
    return 0


if __name__ == "__main__":
    sys.exit(main())
