#!/usr/bin/env python3
"""Writes the reference files: `make_reference.py [FOLDER]`, by default beside this script."""

import json
import platform
import sys
from itertools import accumulate
from pathlib import Path

import numpy
import torch

import inputs
import models
import rounding
from cases import (
    CLIPPING, GRADIENTS, GRADIENTS_BF16, SEQUENCES, STEPS, TEXT, TRAINING, TRAINING_BF16)
from training import train, train_bf16

FACTOR, FLOOR = 8, 1e-6
TOLERANCE_RULE = (
    "relative for loss and gradient_norm, per step; absolute for weights. 8 times the largest "
    "deviation up to that step of PyTorch in float32 from PyTorch in float64, over {}, and at "
    "least 1e-6"
)
MICRO_BATCHES = SEQUENCES, 4, 1
ORDERS = range(3)
ERRORS = range(3)


def versions():
    return {"python": platform.python_version(), "torch": torch.__version__.split("+")[0],
            "numpy": numpy.__version__}


def description(model, seed):
    listed = [
        {"name": p.name, "shape": p.shape, "init": p.init, "deviation": p.deviation}
        for p in models.parameters(model)
    ]
    return {"model": model, "seed": seed, "parameters": listed}


def has_gradient(model, name, count):
    """Which elements of a parameter have one: bool [count]. All but the attention key's bias.

    That bias adds the same to every score of a row, which softmax ignores, so its gradient is
    rounding noise. Adam magnifies it to full steps: no two implementations agree on it.
    """
    keep = torch.ones(count, dtype=torch.bool)
    if name.endswith("qkv.bias"):
        keep[model["width"] : 2 * model["width"]] = False
    return keep


def spots(model, name, initial, final):
    """A few elements of a parameter, both ends and some between, before and after training."""
    count = final.numel()
    keep = has_gradient(model, name, count)
    wanted = {0, count // 3, count // 2, 2 * count // 3 + 1, count - 1}
    indices = sorted(i for i in wanted if i < count and keep[i])
    return {"name": name, "index": indices, "initial": initial.flatten()[indices].tolist(),
            "final": final.flatten()[indices].tolist()}


def deviations(model, truth, runs):
    """Largest deviation of the runs from the truth: per step (relative), of weights."""
    losses, norms, weights = truth
    loss, norm, weight = [0.0] * STEPS, [0.0] * STEPS, 0.0
    for losses32, norms32, weights32 in runs:
        for s in range(STEPS):
            loss[s] = max(loss[s], abs(losses32[s] / losses[s] - 1))
            norm[s] = max(norm[s], abs(norms32[s] / norms[s] - 1))
        for name, value in weights.items():
            apart = (weights32[name] - value).abs().flatten()
            apart = apart[has_gradient(model, name, apart.numel())]
            weight = max(weight, apart.max().item())
    return {"loss": loss, "gradient_norm": norm, "weight": weight}


def tolerances(deviation, over):
    def bound(worst):
        return float(f"{max(FACTOR * worst, FLOOR):.3g}")

    return {
        "rule": TOLERANCE_RULE.format(over),
        "loss": [bound(worst) for worst in accumulate(deviation["loss"], max)],
        "gradient_norm": [bound(worst) for worst in accumulate(deviation["gradient_norm"], max)],
        "weight": bound(deviation["weight"]),
    }


def training_file(case, truth, runs, over, **precision):
    """The truth, and a tolerance from how far the runs, which went over something, are off."""
    model, optimizer, seed = case
    losses, norms, weights = truth
    initial = models.initial_weights(model, seed, torch.float64)
    deviation = deviations(model, truth, runs)
    beginning = inputs.make_text(TEXT["seed"], 64).decode()
    starts = [
        inputs.batch_starts(seed, s, SEQUENCES, TEXT["size"], model["sequence_length"]).tolist()
        for s in range(2)
    ]
    return {
        **description(model, seed),
        **precision,
        "text": {**TEXT, "rule": inputs.TEXT_RULE, "beginning": beginning},
        "batch": {"sequences": SEQUENCES, "rule": inputs.BATCH_RULE,
                  "starts_of_first_steps": starts},
        "optimizer": optimizer,
        "gradient_clipping": CLIPPING,
        "losses": losses,
        "gradient_norms": norms,
        "spot_weights": [spots(model, n, initial[n], w) for n, w in weights.items()],
        "float32_deviation": deviation,
        "tolerance": tolerances(deviation, over),
        "versions": versions(),
    }


def plain_file(case):
    runs = [train(case, torch.float32, micro_batch) for micro_batch in MICRO_BATCHES]
    return training_file(case, train(case, torch.float64), runs, "micro-batches of 12, 4 and 1 "
                         "sequences (the same sums in another order)")


def bf16_file(case, ranks):
    runs = [train_bf16(case, ranks, torch.float32, order) for order in ORDERS]
    for seed in ERRORS:
        with rounding.inexact(seed):
            runs.append(train_bf16(case, ranks, torch.float64))
    over = (f"{len(ORDERS)} orders of summation in products, and {len(ERRORS)} times float64 with "
            "every result moved at random by up to 4 roundings of itself and one of the largest; "
            "all rounded to bf16 by the rule")
    return training_file(case, train_bf16(case, ranks, torch.float64), runs, over, dtype="bf16",
                         ranks=ranks, rounding=rounding.RULE)


def large_weights(model, seed, sequences):
    """Weights so large that no term of a gradient hides behind another, tokens and targets."""
    length, weights = model["sequence_length"], models.Weights()
    for number, p in enumerate(models.parameters(model)):
        value = torch.from_numpy(inputs.almost_normal(seed, number, p.shape, 0.5))
        weights[p.name] = value + 1 if p.init == "ones" else value
    words = inputs.philox(seed, len(weights), numpy.arange(sequences * (length + 1)))
    drawn = torch.from_numpy((words[0] % numpy.uint64(model["vocabulary"])).astype(numpy.int64))
    drawn = drawn.reshape(sequences, length + 1)
    return weights, drawn[:, :-1], drawn[:, 1:]


def gradient_file(model, tokens, targets, loss, weights, gradients, **precision):
    named = [
        {"name": name, "shape": list(w.shape),
         # the shortest decimals that give the same float32
         "weight": [float(str(value)) for value in w.flatten().numpy()],
         "gradient": gradients[name].flatten().tolist()}
        for name, w in weights.items()
    ]
    return {"model": model, **precision, "tokens": tokens.tolist(), "targets": targets.tolist(),
            "loss": loss, "parameters": named, "versions": versions()}


def plain_gradients(model, seed):
    weights, tokens, targets = large_weights(model, seed, 3)
    leaves = models.Weights((name, w.double().requires_grad_()) for name, w in weights.items())
    loss = models.loss(model, leaves, tokens, targets)
    loss.backward()
    gradients = {name: leaf.grad for name, leaf in leaves.items()}
    return gradient_file(model, tokens, targets, loss.item(), weights, gradients)


def bf16_gradients(model, seed, ranks):
    """Equal to the bit, in whatever order float32 sums, or there is no such file."""
    weights, tokens, targets = large_weights(model, seed, 6)

    def result(dtype, order=0):
        masters = {name: w.to(dtype) for name, w in weights.items()}
        return rounding.loss_and_gradients(model, masters, tokens, targets, ranks, order)

    loss, gradients = result(torch.float64)
    others = [result(torch.float32, order)[1] for order in ORDERS]
    for error in ERRORS:
        with rounding.inexact(error):
            others.append(result(torch.float64)[1])
    for other in others:
        for name, gradient in other.items():
            if not torch.equal(gradient.double(), gradients[name]):
                raise AssertionError(f"{name}: a rounding is near a tie; take another seed")
    return gradient_file(model, tokens, targets, loss, weights, gradients, dtype="bf16",
                         ranks=ranks, rounding=rounding.RULE)


def write(path, content):
    """JSON with one line per top-level entry, or per item of a list of objects."""
    lines = []
    for key, value in content.items():
        if isinstance(value, list) and isinstance(value[0], dict):
            text = "[\n  " + ",\n  ".join(json.dumps(item) for item in value) + "\n ]"
        else:
            text = json.dumps(value)
        lines.append(f' "{key}": {text}')
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def main(folder):
    torch.set_num_threads(1)
    inputs.check_philox()
    for name, case in TRAINING.items():
        write(folder / f"{name}.json", plain_file(case))
    for name, (case, ranks) in TRAINING_BF16.items():
        write(folder / f"{name}.json", bf16_file(case, ranks))
    for name, (model, seed) in GRADIENTS.items():
        write(folder / f"{name}.json", plain_gradients(model, seed))
    for name, (model, seed, ranks) in GRADIENTS_BF16.items():
        write(folder / f"{name}.json", bf16_gradients(model, seed, ranks))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
