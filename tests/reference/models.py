"""The two models as plain PyTorch functions of a dictionary of parameters."""

import math
from collections import OrderedDict, namedtuple

import torch
from torch.nn import functional

import inputs

LAYER_NORM_EPSILON = 1e-5

# init is "ones", "zeros" or "normal"; the deviation is for "normal"
Parameter = namedtuple("Parameter", "name shape init deviation")


class Weights(OrderedDict):
    """Parameters by name, and how operations on them are carried out: here as PyTorch does."""

    def run(self, operation, *inputs):
        return operation(*inputs)


def weight(name, shape, deviation):
    return Parameter(name, shape, "normal", deviation)


def zeros(name, width):
    return Parameter(name, [width], "zeros", 0.0)


def layer_norm_parameters(name, width):
    return [Parameter(f"{name}.weight", [width], "ones", 0.0), zeros(f"{name}.bias", width)]


def transformer_parameters(model):
    """GPT-2's, in order of registration. The head is the token embedding and has no own entry."""
    width, residual = model["width"], 0.02 / math.sqrt(2 * model["layers"])
    result = [
        weight("token_embedding.weight", [model["vocabulary"], width], 0.02),
        weight("position_embedding.weight", [model["sequence_length"], width], 0.02),
    ]
    for i in range(model["layers"]):
        block = f"blocks.{i}"
        result += layer_norm_parameters(f"{block}.norm1", width) + [
            weight(f"{block}.attention.qkv.weight", [3 * width, width], 0.02),
            zeros(f"{block}.attention.qkv.bias", 3 * width),
            weight(f"{block}.attention.projection.weight", [width, width], residual),
            zeros(f"{block}.attention.projection.bias", width),
        ]
        result += layer_norm_parameters(f"{block}.norm2", width) + [
            weight(f"{block}.mlp.up.weight", [4 * width, width], 0.02),
            zeros(f"{block}.mlp.up.bias", 4 * width),
            weight(f"{block}.mlp.down.weight", [width, 4 * width], residual),
            zeros(f"{block}.mlp.down.bias", width),
        ]
    return result + layer_norm_parameters("final_norm", width)


def mlp_parameters(model):
    """Embedding, hidden layers, and a last layer small enough that the first loss is near ln V."""
    embedding, vocabulary = model["embedding"], model["vocabulary"]
    sizes = [model["sequence_length"] * embedding] + model["hidden"] + [vocabulary]
    result = [weight("embedding.weight", [vocabulary, embedding], 1.0)]
    for i, (fan_in, fan_out) in enumerate(zip(sizes, sizes[1:])):
        gain = 0.1 if i == len(sizes) - 2 else 1.0
        deviation = math.sqrt(2 / fan_in) * gain
        result.append(weight(f"layers.{i}.weight", [fan_out, fan_in], deviation))
        result.append(zeros(f"layers.{i}.bias", fan_out))
    return result


def parameters(model):
    return {"transformer": transformer_parameters, "mlp": mlp_parameters}[model["type"]](model)


def initial_weights(model, seed, dtype):
    """Leaf tensors by name: the float32 initial values, held in dtype."""
    result = Weights()
    for number, (name, shape, init, deviation) in enumerate(parameters(model)):
        if init == "normal":
            value = torch.from_numpy(inputs.almost_normal(seed, number, shape, deviation)).to(dtype)
        else:
            value = torch.full(shape, 1.0 if init == "ones" else 0.0, dtype=dtype)
        result[name] = value.requires_grad_()
    return result


def gelu(x):
    return functional.gelu(x, approximate="tanh")


def attention_scale(head_width):
    return 1 / math.sqrt(head_width)


def linear(w, name, x):
    return w.run(functional.linear, x, w[f"{name}.weight"], w[f"{name}.bias"])


def rows_of(table, tokens):
    return table[tokens]


def layer_norm(w, name, x):
    scale, shift = w[f"{name}.weight"], w[f"{name}.bias"]
    return w.run(functional.layer_norm, x, x.shape[-1:], scale, shift, LAYER_NORM_EPSILON)


def causal_softmax(scores, scale):
    """scores [..., T, T]: a position sees itself and those before it."""
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return (scores * scale).masked_fill(future, -math.inf).softmax(dim=-1)


def attention(w, name, x, heads):
    """Causal self-attention. x [B, T, C]; a head is a contiguous slice of C in q, k and v each."""
    batch, length, width = x.shape
    q, k, v = (
        part.reshape(batch, length, heads, width // heads).transpose(1, 2)
        for part in linear(w, f"{name}.qkv", x).split(width, dim=-1)
    )
    scores = w.run(torch.matmul, q, k.transpose(-1, -2))
    probabilities = w.run(causal_softmax, scores, attention_scale(width // heads))
    mixed = w.run(torch.matmul, probabilities, v)
    return linear(w, f"{name}.projection", mixed.transpose(1, 2).reshape(x.shape))


def transformer_logits(model, w, tokens):
    """tokens [B, T] -> logits [B, T, V]."""
    table = w["token_embedding.weight"]
    x = w.run(torch.add, w.run(rows_of, table, tokens), w["position_embedding.weight"])
    for i in range(model["layers"]):
        block = f"blocks.{i}"
        normed = layer_norm(w, f"{block}.norm1", x)
        x = w.run(torch.add, x, attention(w, f"{block}.attention", normed, model["heads"]))
        normed = layer_norm(w, f"{block}.norm2", x)
        inner = w.run(gelu, linear(w, f"{block}.mlp.up", normed))
        x = w.run(torch.add, x, linear(w, f"{block}.mlp.down", inner))
    return w.run(torch.matmul, layer_norm(w, "final_norm", x), table.T)


def mlp_logits(model, w, tokens):
    """tokens [B, T] -> logits [B, V] of the one token that follows."""
    x = w.run(rows_of, w["embedding.weight"], tokens).flatten(1)
    for i in range(len(model["hidden"])):
        x = w.run(gelu, linear(w, f"layers.{i}", x))
    return linear(w, f"layers.{len(model['hidden'])}", x)


def loss(model, w, tokens, targets):
    """Mean cross-entropy in nats: over all positions, or for the MLP over the last targets only."""
    if model["type"] == "mlp":
        return functional.cross_entropy(mlp_logits(model, w, tokens), targets[:, -1])
    logits = transformer_logits(model, w, tokens)
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
