"""Writes optimizers.json: ten updates of optimizers and schedules by optax in float64.

Run with `pip install jax optax`, then `python make_optimizers.py`.
"""

import json
import pathlib

import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_enable_x64", True)

START = [0.7, -1.3, 2.1]
SCALE = [1.0, 3.0, 0.2]
STEPS = 10


def loss(p):
    return jnp.sum(jnp.array(SCALE) * (jnp.sin(p) + p**2))


def path(optimizer):
    p = jnp.array(START)
    state = optimizer.init(p)
    rows = []
    for _ in range(STEPS):
        updates, state = optimizer.update(jax.grad(loss)(p), state, p)
        p = optax.apply_updates(p, updates)
        rows.append([float(v) for v in p])
    return rows


def halving(count):
    # optax.exponential_decay computes with float32 counts inside an optimizer.
    return 0.05 * 0.5 ** (count.astype(jnp.float64) / 4)


def plateau(losses):
    # optax reduces when the count reaches its patience; "more than 2 bad steps" is a patience of 3.
    t = optax.contrib.reduce_on_plateau(factor=0.5, patience=3, rtol=0.01, atol=0.0, min_scale=0.1)
    p = jnp.zeros(1)
    state = t.init(p)
    scales = []
    for value in losses:
        _, state = t.update(p, state, value=jnp.asarray(value))
        scales.append(float(state.scale))
    return scales


LOSSES = [1.0, 0.9, 0.899, 0.95, 0.898, 0.5, 0.6, 0.6, 0.6, 0.6, 0.499, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.1]
steps = [0, 1, 7, 50, 99, 100, 300]
exponential = optax.exponential_decay(0.02, 25, 0.3)
cosine = optax.cosine_decay_schedule(0.02, 100, alpha=0.05)
data = {
    "optax": optax.__version__,
    "start": START,
    "scale": SCALE,
    "adam": path(optax.adam(0.05)),
    "adamw": path(optax.adamw(0.05, weight_decay=0.1)),
    "sgd_momentum": path(optax.sgd(0.02, momentum=0.8)),
    "adam_exponential": path(optax.adam(halving)),
    "plateau_losses": LOSSES,
    "plateau_scales": plateau(LOSSES),
    "schedule_steps": steps,
    "exponential": [float(exponential(s)) for s in steps],
    "cosine": [float(cosine(s)) for s in steps],
}
target = pathlib.Path(__file__).with_name("optimizers.json")
target.write_text(json.dumps(data, indent=1) + "\n")
