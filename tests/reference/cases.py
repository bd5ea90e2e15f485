"""Which runs the reference makes. All numbers that a case needs stand here and in its JSON file."""

SEQUENCES = 12  # per step: 1, 2, 3 and 4 ranks divide it
STEPS = 20
TEXT = {"seed": 12345, "size": 4096}

GPT_NANO = {"type": "transformer", "vocabulary": 256, "sequence_length": 64, "width": 64,
            "heads": 4, "layers": 3}
MLP_SMALL = {"type": "mlp", "vocabulary": 256, "sequence_length": 16, "embedding": 16,
             "hidden": [256, 256]}
# Odd sizes, so that parameters straddle ranks and no vector width divides anything.
GPT_TINY = {"type": "transformer", "vocabulary": 73, "sequence_length": 5, "width": 6,
            "heads": 3, "layers": 2}

ADAM_W = {"type": "adam", "adam_w_mode": True, "learning_rate": 1e-3, "betas": [0.9, 0.999],
          "epsilon": 1e-8, "weight_decay": 0.01}
ADAM_L2 = dict(ADAM_W, adam_w_mode=False)
SGD = {"type": "sgd", "learning_rate": 0.1, "momentum": 0.9, "weight_decay": 0.01}

# seeds beyond 32 bits: a key whose high word is lost would not show below that
TRAINING = {
    "gpt_nano": (GPT_NANO, ADAM_W, 2**32 + 7),
    "gpt_nano_adam_l2": (GPT_NANO, ADAM_L2, 7),
    "gpt_tiny_tied": (GPT_TINY, SGD, 5 * 2**32 + 11),
    "mlp_small": (MLP_SMALL, ADAM_W, 2**32 + 7),
    "mlp_small_sgd": (MLP_SMALL, SGD, 7),
}
CLIPPING = 1.0

GRADIENTS = {
    "gpt_gradients": (dict(GPT_TINY, vocabulary=11), 3),
    "mlp_gradients": ({"type": "mlp", "vocabulary": 7, "sequence_length": 3, "embedding": 5,
                       "hidden": [33, 3]}, 3),
}

# In bf16, with the number of ranks. A sum that one program rounds up and the other down leads on to
# more of them. So steps of the large models are small, and the seeds of the others were chosen such
# that it does not begin at once.
TRAINING_BF16 = {
    "gpt_nano_bf16": ((GPT_NANO, dict(SGD, learning_rate=0.02), 2**32 + 7), 4),
    "gpt_tiny_bf16": ((GPT_TINY, SGD, 5 * 2**32 + 11), 3),
    "mlp_small_bf16": ((MLP_SMALL, dict(ADAM_W, learning_rate=3e-4), 2**32 + 25), 3),
    "mlp_small_sgd_bf16": ((MLP_SMALL, SGD, 2**32 + 24), 3),
}

# Six sequences, with the number of ranks; the seeds are such that no rounding is near a tie.
GRADIENTS_BF16 = {
    "gpt_gradients_bf16": (GRADIENTS["gpt_gradients"][0], 30, 3),
    "mlp_gradients_bf16": (GRADIENTS["mlp_gradients"][0], 12, 3),
}
