"""The same models in bf16: computed in float64 or float32, and rounded where zerolab rounds."""

from contextlib import contextmanager

import torch
from torch.nn import functional

import models


def nearest(x):
    """To the nearest bf16, ties to even; computing goes on in x's type."""
    return x.to(torch.bfloat16).to(x.dtype)


# What is rounded, and how. sensitivity.py changes entries to see whether that would be noticed.
POINTS = {
    "weights": nearest,  # copied from the masters after every update
    "values": nearest,  # each element that an operation returns
    "gradients": nearest,  # by each input of an operation, and their sum where it has two uses
    "mean": nearest,  # of the gradients of all ranks
}

RULE = (
    "master weights and optimizer are not rounded; weights = bf16(masters). An operation rounds "
    "each element of its result once, and in backward each element of its inputs' gradients: "
    "embedding, addition, layer norm, linear (with its bias), product, softmax (from scores not "
    "yet scaled), GELU. Gradients of two uses are rounded, added, and rounded again. The loss is "
    "not rounded. Rank r takes sequences [r n, (r + 1) n) of n = sequences / ranks and the mean "
    "over them; the sum of the ranks' gradients divided by their number is rounded; the norm is "
    "its norm, and clipping does not round"
)


@contextmanager
def inexact(seed):
    """Float64 results as float32 might have them: what is no float32 moves before it is rounded.

    By up to four float32 roundings of itself and one of the largest of the tensor, at random:
    fast exponentials, and sums with cancellation in another order, err by as much.
    """
    generator = torch.Generator().manual_seed(seed)

    def moved(x):
        way = torch.rand(x.shape, generator=generator, dtype=x.dtype) * 2 - 1
        error = way * (4 * x.abs() + x.abs().max()) * 2**-24
        return nearest(torch.where(x.float() == x, x, x + error))

    before = dict(POINTS)
    POINTS.update(values=moved, gradients=moved, mean=moved)
    try:
        yield
    finally:
        POINTS.update(before)


class Rounded(torch.autograd.Function):
    """A gradient on its way back and, at a point, the value on its way forward."""

    @staticmethod
    def forward(ctx, x, point):
        return POINTS[point](x) if point else x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return POINTS["gradients"](gradient), None


def passed(x, point=None):
    return Rounded.apply(x, point)


class CausalSoftmax(torch.autograd.Function):
    """With the gradient at the probabilities that are kept, which are the rounded ones."""

    @staticmethod
    def forward(ctx, scores, scale):
        probabilities = POINTS["values"](models.causal_softmax(scores, scale))
        ctx.save_for_backward(probabilities)
        ctx.scale = scale
        return probabilities

    @staticmethod
    def backward(ctx, gradient):
        (p,) = ctx.saved_tensors
        return ctx.scale * p * (gradient - (p * gradient).sum(-1, keepdim=True)), None


def shuffled(operation, seed):
    """A product with its rows, columns and summands in another order: other rounding only."""

    def product(a, b, *bias):
        if operation is functional.linear:
            a, shape = a.flatten(0, -2), (*a.shape[:-1], b.shape[0])
            b = b.T
        else:
            shape = (*a.shape[:-1], b.shape[-1])
        generator = torch.Generator().manual_seed(seed)
        rows, inner, columns = (
            torch.randperm(n, generator=generator) for n in (*a.shape[-2:], b.shape[-1])
        )
        result = a[..., rows, :][..., inner] @ b[..., inner, :][..., columns]
        for each in bias:
            result = result + each[columns]
        return result[..., rows.argsort(), :][..., columns.argsort()].reshape(shape)

    return product


class RoundedWeights(models.Weights):
    """Operations round their results, and the gradients that they pass back.

    `order` is that of summation in products: 0 is PyTorch's, any other is shuffled.
    """

    def __init__(self, leaves, order):
        super().__init__((name, passed(leaf, "weights")) for name, leaf in leaves.items())
        self.order = order

    def run(self, operation, *inputs):
        inputs = [passed(x) if torch.is_tensor(x) else x for x in inputs]
        if operation is models.causal_softmax:
            return CausalSoftmax.apply(*inputs)
        if self.order and operation in (functional.linear, torch.matmul):
            operation = shuffled(operation, self.order)
        return passed(operation(*inputs), "values")


def mean_over_ranks(gradients):
    return POINTS["mean"](sum(gradients) / len(gradients))


def loss_and_gradients(model, masters, tokens, targets, ranks, order=0):
    """Of one batch on several ranks: the loss, and the rounded mean gradient by name."""
    loss, gradients = 0.0, {name: [] for name in masters}
    for part in torch.arange(len(tokens)).chunk(ranks):
        leaves = {name: w.detach().clone().requires_grad_() for name, w in masters.items()}
        of_rank = models.loss(model, RoundedWeights(leaves, order), tokens[part], targets[part])
        of_rank.backward()
        loss += of_rank.item() / ranks
        for name, leaf in leaves.items():
            gradients[name].append(leaf.grad)
    return loss, {name: mean_over_ranks(each) for name, each in gradients.items()}
