#!/usr/bin/env python3
"""make_gpt2.py FILE [flags]: a tiny safetensors file under the names of GPT-2, as it is published.

Written from the format's description, with Python's standard library alone. Every element is a
multiple of 1/64 below 2, which all types hold exactly, and tells parameter, row and column apart;
import_test.cpp has the same rule, in the layout and under the names of zerolab.
"""

import argparse
import json
import struct
from pathlib import Path

BLOCK = {  # our number of the kind, shape as published: linear layers are [in, out]
    "ln_1.weight": (5, "w"), "ln_1.bias": (6, "w"),
    "attn.c_attn.weight": (7, "w,3w"), "attn.c_attn.bias": (8, "3w"),
    "attn.c_proj.weight": (9, "w,w"), "attn.c_proj.bias": (10, "w"),
    "ln_2.weight": (11, "w"), "ln_2.bias": (12, "w"),
    "mlp.c_fc.weight": (13, "w,4w"), "mlp.c_fc.bias": (14, "4w"),
    "mlp.c_proj.weight": (15, "4w,w"), "mlp.c_proj.bias": (16, "w"),
}  # fmt: skip


def value(kind, row, column):
    return ((31 * kind + 7 * row + 3 * column) % 251 - 125) / 64


def encoded(dtype, values):
    if dtype == "BF16":  # the upper half of a float
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{ {'F32': 'f', 'F16': 'e', 'F64': 'd'}[dtype] }", *values)


def tensors(flags):
    """Name, shape and values of each."""
    width = flags.width
    table = [value(1, i, j) for i in range(flags.vocabulary) for j in range(width)]
    yield "wte.weight", [flags.vocabulary, width], table
    positions = [value(2, i, j) for i in range(flags.positions) for j in range(width)]
    yield "wpe.weight", [flags.positions, width], positions
    for layer in range(flags.layers):
        for name, (kind, extents) in BLOCK.items():
            shape = [int(e.rstrip("w") or 1) * width for e in extents.split(",")]
            kind += 17 * layer
            if len(shape) == 2:  # [in, out]: the row of the layer's matrix is the column here
                values = [value(kind, o, i) for i in range(shape[0]) for o in range(shape[1])]
            else:
                values = [value(kind, i, 0) for i in range(shape[0])]
            yield f"h.{layer}.{name}", shape, values
        if flags.masks:
            mask = [float(j <= i) for i in range(flags.positions) for j in range(flags.positions)]
            yield f"h.{layer}.attn.bias", [1, 1, flags.positions, flags.positions], mask
            yield f"h.{layer}.attn.masked_bias", [1], [-1e4]
    yield "ln_f.weight", [width], [value(3, i, 0) for i in range(width)]
    yield "ln_f.bias", [width], [value(4, i, 0) for i in range(width)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    for size in ("layers", "width", "vocabulary", "positions"):
        parser.add_argument(f"--{size}", type=int, required=True)
    parser.add_argument("--dtype", default="F32", choices=["F32", "F16", "BF16", "F64"])
    parser.add_argument("--prefix", action="store_true", help="transformer. before the names")
    parser.add_argument("--head", default="absent", choices=["absent", "equal", "different"])
    parser.add_argument("--masks", action="store_true")
    parser.add_argument("--drop", help="the name of a tensor that is left out")
    parser.add_argument("--flatten", help="the name of one whose shape becomes one extent")
    flags = parser.parse_args()

    named = [("transformer." * flags.prefix + name, *rest) for name, *rest in tensors(flags)]
    if flags.head != "absent":
        _, shape, values = named[0]
        other = values if flags.head == "equal" else [*values[:-1], values[-1] + 1]
        named.append(("lm_head.weight", shape, other))
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, shape, values in named:
        if name == flags.drop:
            continue
        if name == flags.flatten:
            shape = [len(values)]
        encoded_values = encoded(flags.dtype, values)
        offsets = [len(data), len(data) + len(encoded_values)]
        header[name] = {"dtype": flags.dtype, "shape": shape, "data_offsets": offsets}
        data += encoded_values
    text = json.dumps(header).encode()
    flags.file.write_bytes(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    main()
