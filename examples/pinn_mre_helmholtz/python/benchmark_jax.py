"""The reference workload on JAX (pip install jax optax); CPU unless JAX_PLATFORMS says otherwise.

    python benchmark_jax.py 200,1000 [F,A,B]

Prints JSON lines. Variants: "jit" forward; "autodiff" and "jets" (hand-written propagation of the
derivatives), each as one jitted step and as a jitted scan of 100 steps (of 5 from 5,000 points on).
"""

import json
import math
import os
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")
import common
import jax
import jax.numpy as jnp
import optax

jax.config.update("jax_default_matmul_precision", "highest")


def emit(variant, workload, points, us):
    row = dict(framework="jax", variant=variant, workload=workload, points=points, us_per_step=us)
    print(json.dumps(row), flush=True)


def single(tree):
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), tree)


def forward(layers, frequencies, x):
    z = (x @ frequencies) * (2 * math.pi)
    h = jnp.concatenate([jnp.sin(z), jnp.cos(z)], -1)
    for w, b in layers[:-1]:
        h = jnp.tanh(h @ w + b)
    return h @ layers[-1][0] + layers[-1][1]


def jets(layers, frequencies, x):
    """Value, two first derivatives and the Laplacian, all through one product per layer."""
    z = (x @ frequencies) * (2 * math.pi)
    g = 2 * math.pi * frequencies
    s, c = jnp.sin(z), jnp.cos(z)
    v = jnp.concatenate([s, c], 1)
    first = [jnp.concatenate([c * g[i], -s * g[i]], 1) for i in range(2)]
    channels = jnp.stack([v, *first, -v * jnp.tile((g * g).sum(0), 2)])
    for i, (w, b) in enumerate(layers):
        y = (channels.reshape(-1, channels.shape[-1]) @ w).reshape(4, x.shape[0], -1)
        v = y[0] + b
        if i == common.LAYERS:
            return v, y[1], y[2], y[3]
        t = jnp.tanh(v)
        slope = 1 - t * t
        bend = slope * (y[3] - 2 * t * (y[1] ** 2 + y[2] ** 2))
        channels = jnp.stack([t, slope * y[1], slope * y[2], bend])


def timed(call, seconds=1.5):
    """Microseconds per call: median of seven samples."""
    for _ in range(2):
        jax.block_until_ready(call())
    start = time.perf_counter()
    jax.block_until_ready(call())
    calls = max(1, int(seconds / 7 / (time.perf_counter() - start)))
    samples = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            out = call()
        jax.block_until_ready(out)
        samples.append((time.perf_counter() - start) / calls * 1e6)
    return sorted(samples)[3]


def training(variant, workload, points, loss, params):
    adam = optax.adam(common.LEARNING_RATE)

    def step(carry, _):
        p, s = carry
        value, g = jax.value_and_grad(loss)(p)
        update, s = adam.update(g, s)
        return (optax.apply_updates(p, update), s), value

    length = 100 if points < 5000 else 5
    one = jax.jit(lambda carry: step(carry, None)[0])
    many = jax.jit(lambda carry: jax.lax.scan(step, carry, None, length=length))
    state = [(params, adam.init(params))]

    def call():
        state[0] = one(state[0])
        return state[0]

    emit(f"{variant}, step", workload, points, timed(call))
    start = (params, adam.init(params))
    emit(f"{variant}, scan of {length}", workload, points, timed(lambda: many(start)) / length)


def main(sizes, workloads):
    for n in sizes:
        x, u, lap = single(common.data(n))
        if "F" in workloads:
            frequencies, layers = single(common.net(2, 1))
            f = jax.jit(forward)
            emit("jit", "F", n, timed(lambda: f(layers, frequencies, x)))
        if "A" in workloads:
            frequencies, layers = single(common.net(1, 2))
            loss = lambda p: jnp.mean((forward(p, frequencies, x) * lap + common.K * u) ** 2)
            training("autodiff", "A", n, loss, layers)
        if "B" not in workloads:
            continue
        (bu, pu), (bm, pm) = single(common.net(2, 3)), single(common.net(1, 4))

        def autodiff(p):
            fu = lambda q: forward(p[0], bu, q)
            fm = lambda q: forward(p[1], bm, q)[0]
            U, M = jax.vmap(fu)(x), jax.vmap(fm)(x)
            gm, gu = jax.vmap(jax.grad(fm))(x), jax.vmap(jax.jacfwd(fu))(x)
            hu = jax.vmap(jax.jacfwd(jax.jacrev(fu)))(x)
            r = M[:, None] * jnp.trace(hu, axis1=2, axis2=3)
            r += jnp.einsum("nd,nkd->nk", gm, gu) + common.K * U
            return jnp.mean((U - u) ** 2) + 0.01 * jnp.mean(r**2)

        def propagated(p):
            U, Ux, Uy, L = jets(p[0], bu, x)
            M, Mx, My, _ = jets(p[1], bm, x)
            r = M * L + Mx * Ux + My * Uy + common.K * U
            return jnp.mean((U - u) ** 2) + 0.01 * jnp.mean(r**2)

        a, b = float(autodiff((pu, pm))), float(propagated((pu, pm)))
        assert abs(a / b - 1) < 1e-4, (a, b)
        training("autodiff", "B", n, autodiff, (pu, pm))
        training("jets", "B", n, propagated, (pu, pm))


if __name__ == "__main__":
    main(
        [int(s) for s in (sys.argv[1:] or ["200,1000"])[0].split(",")],
        (sys.argv[2:] or ["F,A,B"])[0].split(","),
    )
