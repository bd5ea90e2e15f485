"""What both sides must start from: initial weights, text, batches. NumPy and integers only."""

import numpy as np

MASK32 = 0xFFFFFFFF


def philox(seed, high, low):
    """Philox4x32-10 (Salmon et al., SC 2011) at counter (high, low); low may be an array.

    Returns four uint64 arrays that hold 32-bit words, in the shape of low.
    """
    low = np.asarray(low, dtype=np.uint64)
    mask, shift = np.uint64(MASK32), np.uint64(32)
    words = [
        low & mask,
        low >> shift,
        np.full_like(low, high & MASK32),
        np.full_like(low, high >> 32),
    ]
    key0, key1 = seed & MASK32, seed >> 32
    for _ in range(10):
        product0 = words[0] * np.uint64(0xD2511F53)
        product1 = words[2] * np.uint64(0xCD9E8D57)
        words = [
            (product1 >> shift) ^ words[1] ^ np.uint64(key0),
            product1 & mask,
            (product0 >> shift) ^ words[3] ^ np.uint64(key1),
            product0 & mask,
        ]
        key0 = (key0 + 0x9E3779B9) & MASK32
        key1 = (key1 + 0xBB67AE85) & MASK32
    return words


def check_philox():
    """The known answers that the authors of Philox publish with Random123."""
    known = [
        (0, 0, 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (2**64 - 1, 2**64 - 1, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (0x299F31D0A4093822, 0x0370734413198A2E, 0x85A308D3243F6A88,
         "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ]
    for seed, high, low, answer in known:
        got = " ".join(f"{int(word):08x}" for word in philox(seed, high, low))
        if got != answer:
            raise AssertionError(f"Philox gives {got}, published is {answer}")


def almost_normal(seed, tensor, shape, deviation):
    """float32 samples of parameter number `tensor`, element by element in row-major order."""
    words = philox(seed, tensor, np.arange(int(np.prod(shape)), dtype=np.uint64))
    halves = [half for word in words for half in (word & np.uint64(0xFFFF), word >> np.uint64(16))]
    centred = sum(half.astype(np.int64) for half in halves) - 4 * 65535
    scale = np.float32(1.0 / 53509.91992145) * np.float32(deviation)
    return (centred.astype(np.float32) * scale).reshape(shape)


TEXT_RULE = (
    "state = seed, symbol = 0; per byte: state = (1664525 * state + 1013904223) mod 2^32; "
    "r = state >> 16; symbol = (r >> 2) mod 40 if r mod 4 == 0 else (3 * symbol + 7) mod 40; "
    "the byte is 32 + symbol"
)


def make_text(seed, size):
    """Bytes with something to learn: three of four follow from the byte before. See TEXT_RULE."""
    state, symbol, text = seed, 0, bytearray()
    for _ in range(size):
        state = (1664525 * state + 1013904223) & MASK32
        r = state >> 16
        symbol = (r >> 2) % 40 if r % 4 == 0 else (3 * symbol + 7) % 40
        text.append(32 + symbol)
    return bytes(text)


BATCH_RULE = (
    "steps count from 0; sequence at position p of the global batch of step s starts at "
    "(word[0] + word[1] * 2^32) mod (text size - sequence_length), words of "
    "Philox(seed)(high = s, low = p)"
)


def batch_starts(seed, step, sequences, text_size, length):
    """Where each sequence of a step's global batch starts in the text. See BATCH_RULE."""
    words = philox(seed, step, np.arange(sequences, dtype=np.uint64))
    return ((words[0] | words[1] << np.uint64(32)) % np.uint64(text_size - length)).astype(np.int64)


def batch(text, starts, length):
    """Tokens [B, T] and the same shifted by one: the targets [B, T]."""
    data = np.frombuffer(text, dtype=np.uint8).astype(np.int64)
    rows = np.asarray(starts)[:, None] + np.arange(length)[None, :]
    return data[rows], data[rows + 1]
