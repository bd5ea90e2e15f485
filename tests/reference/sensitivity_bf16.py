#!/usr/bin/env python3
"""Would the bf16 files notice a rounding that is missing, in another place, or of another kind?

Of all of them, or of those named. A row: the mistake, then for each training the largest ratio of
the deviation it causes (in float64) to the tolerance, in loss and gradient norm (above 1 is
caught), and for each gradient file how many elements differ, where none may. The first row is no
mistake.
"""

import json
import sys
from contextlib import ExitStack
from pathlib import Path

import torch
from torch.nn import functional

import make_reference
import models
import rounding
import training
from cases import GRADIENTS_BF16, TRAINING_BF16
from sensitivity import patched, ratios

NEAREST = rounding.nearest
CLIP, INITIAL, OPTIMIZER = training.clip, models.initial_weights, training.make_optimizer
SOFTMAX = models.causal_softmax


def as_it_is(x):
    return x


def truncated(x):
    low = NEAREST(x)
    too_far = low.abs() > x.abs()
    bits = low.to(torch.bfloat16).view(torch.int16) - 1
    return torch.where(too_far, bits.view(torch.bfloat16).to(x.dtype), low)


def ties_away(x):
    """To the nearest, but a value just in the middle goes away from zero."""
    return NEAREST(x * (1 + 2**-22))


def points(rule, *names):
    return (rounding, "POINTS", {**rounding.POINTS, **dict.fromkeys(names, rule)})


ALL = tuple(rounding.POINTS)


def run_with_results_only(self, operation, *inputs):
    """Gradients are rounded where the value was made, after its uses were added."""
    if operation is SOFTMAX:
        return rounding.CausalSoftmax.apply(*inputs)
    return rounding.passed(operation(*inputs), "values")


def bias_added_after_rounding(w, name, x):
    product = w.run(torch.matmul, x, w[f"{name}.weight"].T)
    return w.run(torch.add, product, w[f"{name}.bias"])


def layer_norm_in_parts(w, name, x):
    normed = w.run(functional.layer_norm, x, x.shape[-1:], None, None, models.LAYER_NORM_EPSILON)
    return w.run(torch.add, w.run(torch.mul, normed, w[f"{name}.weight"]), w[f"{name}.bias"])


class SoftmaxKeepsAll:
    @staticmethod
    def apply(scores, scale):
        return rounding.passed(SOFTMAX(scores, scale), "values")


def scores_rounded_when_scaled(scores, scale):
    return SOFTMAX(NEAREST(scores * scale), 1)


def added_in_bf16(gradients):
    total = gradients[0]
    for gradient in gradients[1:]:
        total = NEAREST(total + gradient)
    return NEAREST(total / len(gradients))


def divided_first(gradients):
    return NEAREST(sum(NEAREST(gradient / len(gradients)) for gradient in gradients))


def clip_and_round(weights):
    weights = list(weights)
    norm = CLIP(weights)
    for w in weights:
        w.grad = NEAREST(w.grad)
    return norm


def rounded_start(model, seed, dtype):
    masters = INITIAL(model, seed, dtype)
    return models.Weights((n, NEAREST(w.detach()).requires_grad_()) for n, w in masters.items())


def no_masters(settings, weights):
    optimizer = OPTIMIZER(settings, weights)

    def round_all(*_):
        for w in weights:
            w.data = NEAREST(w.data)

    optimizer.register_step_post_hook(round_all)
    return optimizer


MISTAKES = {
    "none": [],
    "nothing rounded": [points(as_it_is, *ALL)],
    "weights not rounded": [points(as_it_is, "weights")],
    "values not rounded": [points(as_it_is, "values")],
    "gradients not rounded": [points(as_it_is, "gradients", "mean")],
    "mean over ranks not rounded": [points(as_it_is, "mean")],
    "truncation": [points(truncated, *ALL)],
    "truncation of gradients": [points(truncated, "gradients", "mean")],
    "truncation of weights": [points(truncated, "weights")],
    "ties away from zero": [points(ties_away, *ALL)],
    "two uses added before rounding": [(rounding.RoundedWeights, "run", run_with_results_only)],
    "bias added after rounding": [(models, "linear", bias_added_after_rounding)],
    "layer norm in three roundings": [(models, "layer_norm", layer_norm_in_parts)],
    "softmax gradient not from rounded": [(rounding, "CausalSoftmax", SoftmaxKeepsAll)],
    "scaled scores rounded": [(models, "causal_softmax", scores_rounded_when_scaled)],
    "ranks added in bf16": [(rounding, "mean_over_ranks", added_in_bf16)],
    "ranks divided before added": [(rounding, "mean_over_ranks", divided_first)],
    "clipped gradient rounded": [(training, "clip", clip_and_round)],
    "masters rounded at the start": [(models, "initial_weights", rounded_start)],
    "no masters": [(training, "make_optimizer", no_masters)],
    "exact GELU instead of tanh": [(models, "gelu", functional.gelu)],
}


def elements_off(reference, case):
    model, seed, ranks = case
    weights, tokens, targets = make_reference.large_weights(model, seed, 6)
    masters = {name: w.double() for name, w in weights.items()}
    _, gradients = rounding.loss_and_gradients(model, masters, tokens, targets, ranks)
    return sum(
        (gradients[p["name"]].flatten() != torch.tensor(p["gradient"], dtype=torch.float64)).sum()
        for p in reference["parameters"]
    ).item()


def columns(name, reference):
    """What the mistakes that are patched in now do to a case."""
    if name in GRADIENTS_BF16:
        return f"{elements_off(reference, GRADIENTS_BF16[name]):20}"
    case, ranks = TRAINING_BF16[name]
    loss, norm, _ = ratios(reference, training.train_bf16(case, ranks, torch.float64))
    return f"{loss:10.2g}{norm:10.2g}"


def main(names):
    torch.set_num_threads(1)
    folder = Path(__file__).parent
    references = {name: json.loads((folder / f"{name}.json").read_text()) for name in names}
    print(f"{'':34}" + "".join(f"{name:>20}" for name in names))
    for mistake, patches in MISTAKES.items():
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patched(*patch))
            row = "".join(columns(name, references[name]) for name in names)
        print(f"{mistake:34}{row}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or [*TRAINING_BF16, *GRADIENTS_BF16])
