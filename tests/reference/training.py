"""Twenty steps with PyTorch's own optimizers, in one precision or in bf16 with masters."""

import torch

import inputs
import models
from cases import CLIPPING, SEQUENCES, STEPS, TEXT
from rounding import loss_and_gradients


def make_optimizer(settings, weights):
    rate, decay = settings["learning_rate"], settings["weight_decay"]
    if settings["type"] == "sgd":
        return torch.optim.SGD(weights, rate, momentum=settings["momentum"], weight_decay=decay)
    kind = torch.optim.AdamW if settings["adam_w_mode"] else torch.optim.Adam
    return kind(weights, rate, tuple(settings["betas"]), settings["epsilon"], decay)


def clip(weights):
    """Scales all gradients to a global L2 norm of at most CLIPPING; returns the norm before.

    torch.nn.utils.clip_grad_norm_ would do the same, but sums squares in the gradients' own type:
    in float32 that loses 5e-6, more than all else together, and would hide what is to be measured.
    """
    norm = sum(w.grad.double().square().sum() for w in weights).sqrt().item()
    for w in weights:
        w.grad /= max((norm + 1e-6) / CLIPPING, 1.0)
    return norm


def batches(model, seed):
    """Tokens and targets of every step's global batch."""
    text, length = inputs.make_text(**TEXT), model["sequence_length"]
    for step in range(STEPS):
        starts = inputs.batch_starts(seed, step, SEQUENCES, len(text), length)
        yield map(torch.from_numpy, inputs.batch(text, starts, length))


def train(case, dtype, micro_batch=SEQUENCES):
    """Trains a case. micro_batch only reorders rounding: gradients of the mean are accumulated.

    Returns (losses, gradient norms before clipping, weights by name as float64).
    """
    model, settings, seed = case
    named = models.initial_weights(model, seed, dtype)
    weights = list(named.values())
    optimizer = make_optimizer(settings, weights)
    losses, norms = [], []
    for tokens, targets in batches(model, seed):
        optimizer.zero_grad()
        total = 0.0
        for i in range(0, SEQUENCES, micro_batch):
            part = slice(i, i + micro_batch)
            loss = models.loss(model, named, tokens[part], targets[part])
            (loss * (micro_batch / SEQUENCES)).backward()
            total += loss.item() * micro_batch / SEQUENCES
        losses.append(total)
        norms.append(clip(weights))
        optimizer.step()
    return losses, norms, {name: w.detach().double() for name, w in named.items()}


def train_bf16(case, ranks, dtype, order=0):
    """The same in bf16: computed in dtype and rounded by the rule of rounding.py.

    The order, of summation in products, only reorders what is lost in dtype. Returns what train
    does; the weights are the masters.
    """
    model, settings, seed = case
    masters = models.initial_weights(model, seed, dtype)
    optimizer = make_optimizer(settings, list(masters.values()))
    losses, norms = [], []
    for tokens, targets in batches(model, seed):
        loss, gradients = loss_and_gradients(model, masters, tokens, targets, ranks, order)
        for name, w in masters.items():
            w.grad = gradients[name]
        losses.append(loss)
        norms.append(clip(masters.values()))
        optimizer.step()
    return losses, norms, {name: w.detach().double() for name, w in masters.items()}
