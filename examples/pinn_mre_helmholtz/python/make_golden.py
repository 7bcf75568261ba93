"""Golden of workload B in float64 by JAX (pip install jax optax): writes ../tests/golden_b.json.

    python make_golden.py [points] [steps]

Derivatives by coordinates are nested automatic differentiation, not the propagation that the Rust side uses.
"""

import json
import math
import os
import sys

import common
import jax
import jax.numpy as jnp
import numpy as np
import optax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")

SAMPLES = 64  # elements of each gradient that are written, at equal strides


def forward(layers, frequencies, x):
    z = (x @ frequencies) * (2 * math.pi)
    h = jnp.concatenate([jnp.sin(z), jnp.cos(z)], -1)
    for w, b in layers[:-1]:
        h = jnp.tanh(h @ w + b)
    return h @ layers[-1][0] + layers[-1][1]


def main(points=64, steps=10):
    x, u_observed, _ = (jnp.asarray(a) for a in common.data(points))
    (bu, pu), (bm, pm) = common.net(2, 3), common.net(1, 4)
    bu, bm = jnp.asarray(bu), jnp.asarray(bm)
    params = jax.tree.map(jnp.asarray, (pu, pm))

    def loss(p):
        u = lambda q: forward(p[0], bu, q)
        mu = lambda q: forward(p[1], bm, q)[0]
        U, M = jax.vmap(u)(x), jax.vmap(mu)(x)
        grad_mu = jax.vmap(jax.grad(mu))(x)
        grad_u = jax.vmap(jax.jacfwd(u))(x)
        hessian = jax.vmap(jax.jacfwd(jax.jacrev(u)))(x)
        laplacian = jnp.trace(hessian, axis1=2, axis2=3)
        r = M[:, None] * laplacian + jnp.einsum("nd,nkd->nk", grad_mu, grad_u) + common.K * U
        return jnp.mean((U - u_observed) ** 2) + 0.01 * jnp.mean(r**2)

    adam = optax.adam(common.LEARNING_RATE)

    @jax.jit
    def step(p, s):
        value, g = jax.value_and_grad(loss)(p)
        update, s = adam.update(g, s)
        return optax.apply_updates(p, update), s, value

    gradients = {}
    for n, layers in enumerate(jax.jit(jax.grad(loss))(params)):
        for i, layer in enumerate(layers):
            for k, g in enumerate(layer):
                flat = np.asarray(g).ravel()
                stride = -(-flat.size // SAMPLES)
                gradients[f"{n}.layers.{i}.{k}"] = {
                    "norm": float(np.linalg.norm(flat)),
                    "stride": stride,
                    "values": [float(v) for v in flat[::stride]],
                }
    losses, s = [], adam.init(params)
    for _ in range(steps):
        params, s, value = step(params, s)
        losses.append(float(value))
    doc = {
        "made_by": f"make_golden.py, jax {jax.__version__}, float64",
        "points": points,
        "losses": losses,
        "gradients": gradients,
    }
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "golden_b.json")
    with open(path, "w") as out:
        head = {k: v for k, v in doc.items() if k != "gradients"}
        rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in gradients.items())
        out.write(json.dumps(head)[:-1] + ',\n "gradients": {\n' + rows + "\n}}\n")
    print(losses, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main(*(int(a) for a in sys.argv[1:]))
