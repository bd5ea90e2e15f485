#!/usr/bin/env python3
"""Would the tolerances notice? Trains with one deliberate mistake each and prints by how much.

A row: the mistake, then for loss, gradient norm and weights the largest ratio of the deviation it
causes (in float64) to the tolerance. Above 1 it is caught. The first two rows are no mistakes and
must stay below 1: a program that keeps its settings in float32 is right too.
"""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy
import torch
from torch.nn import functional

import models
import training
from cases import TRAINING


def interleaved_heads(w, name, x, heads):
    batch, length, width = x.shape
    order = torch.arange(width).reshape(width // heads, heads).T.flatten()
    rows = torch.cat([order, order + width, order + 2 * width])
    mixed = models.Weights({
        f"{name}.qkv.weight": w[f"{name}.qkv.weight"][rows],
        f"{name}.qkv.bias": w[f"{name}.qkv.bias"][rows],
        f"{name}.projection.weight": w[f"{name}.projection.weight"][:, order],
        f"{name}.projection.bias": w[f"{name}.projection.bias"],
    })
    return ATTENTION(mixed, name, x, heads)


ATTENTION = models.attention
INITIAL = models.initial_weights
PATCHES = {
    "exact GELU instead of tanh": (models, "gelu", functional.gelu),
    "layer norm epsilon 1e-6": (models, "LAYER_NORM_EPSILON", 1e-6),
    "scores not scaled": (models, "attention_scale", lambda width: 1.0),
    "heads interleaved": (models, "attention", interleaved_heads),
    "no clipping": (training, "CLIPPING", 1e9),
    "clipping at 1.001": (training, "CLIPPING", 1.001),
    "high word of the seed lost": (
        models, "initial_weights", lambda model, seed, t: INITIAL(model, seed % 2**32, t)),
}
SETTINGS = {
    "L2 instead of decoupled decay": {"adam_w_mode": False},
    "no weight decay": {"weight_decay": 0.0},
    "Adam epsilon 1e-7": {"epsilon": 1e-7},
    "beta2 0.998": {"betas": [0.9, 0.998]},
    "momentum 0.899": {"momentum": 0.899},
    "beta1 0.899": {"betas": [0.899, 0.999]},
}


def rounded(value):
    """Settings as a program holds them that keeps them in float32."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return float(numpy.float32(value)) if isinstance(value, float) else value


@contextmanager
def patched(module, name, value):
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def ratios(reference, result):
    losses, norms, weights = result
    bound = reference["tolerance"]

    def relative(values, truth, limits):
        return max(abs(v / t - 1) / limit for v, t, limit in zip(values, truth, limits))

    worst = 0.0
    for spot in reference["spot_weights"]:
        got = weights[spot["name"]].flatten()[spot["index"]]
        truth = torch.tensor(spot["final"], dtype=torch.float64)
        worst = max(worst, (got - truth).abs().max().item())
    return (relative(losses, reference["losses"], bound["loss"]),
            relative(norms, reference["gradient_norms"], bound["gradient_norm"]),
            worst / bound["weight"])


def applies(change, optimizer):
    return all(key in optimizer and optimizer[key] != value for key, value in change.items())


def main(name):
    torch.set_num_threads(1)
    reference = json.loads((Path(__file__).parent / f"{name}.json").read_text())
    model, optimizer, seed = TRAINING[name]

    def report(mistake, settings):
        result = training.train((model, settings, seed), torch.float64)
        row = ratios(reference, result)
        print(f"{mistake:32}" + "".join(f"{ratio:12.3g}" for ratio in row))

    print(f"{name:32}{'loss':>12}{'norm':>12}{'weights':>12}")
    report("none", optimizer)
    report("settings rounded to float32", rounded(optimizer))
    for mistake, patch in PATCHES.items():
        with patched(*patch):
            report(mistake, optimizer)
    for mistake, change in SETTINGS.items():
        if applies(change, optimizer):
            report(mistake, {**optimizer, **change})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gpt_nano")
