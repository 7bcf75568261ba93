"""The numbers of the reference workload, as in src/numbers.rs (pip install numpy)."""

import numpy as np

FEATURES, HIDDEN, LAYERS = 64, 128, 4
K = 40.0
LEARNING_RATE = 1e-3


def uniform(stream, n):
    """SplitMix64 at positions 0..n of a stream, upper 24 bits: multiples of 2^-24 in [0, 1)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) + (np.uint64(stream) << np.uint64(32))
        z = z * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(40)).astype(np.float64) / 2**24


def symmetric(stream, shape, limit):
    u = uniform(stream, int(np.prod(shape)))
    return ((2 * u - 1) * limit).astype(np.float32).astype(np.float64).reshape(shape)


def normal(stream, shape):
    n = int(np.prod(shape))
    u = uniform(stream, 12 * n).reshape(n, 12)
    return (u.sum(1) - 6.0).reshape(shape)


def net(outputs, seed):
    """Frequencies [2, 64] and (weight, bias) of each layer."""
    stream = 10 * seed
    layers = []
    for i in range(LAYERS + 1):
        out = outputs if i == LAYERS else HIDDEN
        limit = np.sqrt(6.0 / (HIDDEN + out))
        layers.append((symmetric(stream + 1 + i, (HIDDEN, out), limit), np.zeros(out)))
    return normal(stream, (2, FEATURES)), layers


def data(n):
    """Points, observed field and its Laplacian, [n, 2] each."""
    coarse = lambda v: np.floor(v * 2**20 + 0.5) / 2**20
    x = uniform(100, 2 * n).reshape(n, 2)
    u = np.stack(
        [coarse(np.sin(6 * x[:, 0]) * np.cos(4 * x[:, 1])), coarse(np.cos(6 * x[:, 0] + x[:, 1]))], 1
    )
    return x, u, -52 * u
