"""Float64 goldens of the conformance suite, made by JAX (pip install jax).

    python make_goldens.py            # writes goldens.json beside this file

Every case is a scalar function F of one vector x. Inputs, output weights and the direction v come from
closed formulas that are exact in float32 and repeated in conformance/inputs.rs. For each case the file holds
F, its gradient, grad(grad F . v) and grad(grad(grad F . v) . v).
"""

import json
import math
import os

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_default_matmul_precision", "highest")


def quasi(n, step):
    """Multiples of 1/256 in [0, 1): a Weyl sequence, coarse enough to be exact in float32."""
    t = np.arange(1, n + 1) * step
    return np.floor((t - np.floor(t)) * 256) / 256


def inputs(n, lo, hi):
    return lo + (hi - lo) * quasi(n, 0.6180339887498949)


def weights(shape):
    n = int(np.prod(shape, dtype=int))
    return jnp.asarray((0.25 + quasi(n, 0.7548776662466927)).reshape(shape))


def direction(n):
    return jnp.asarray(2 * quasi(n, 0.5698402909980532) - 1)


def wsum(y):
    return jnp.sum(weights(y.shape) * y)


def wsin(y):
    """Linear operations get curvature from a sine, so that all orders are seen."""
    return wsum(jnp.sin(y))


def golden(f, n, lo, hi, **more):
    x, v = jnp.asarray(inputs(n, lo, hi)), direction(n)
    d1 = jax.grad(f)
    d2 = jax.grad(lambda x: jnp.dot(d1(x), v))
    d3 = jax.grad(lambda x: jnp.dot(d2(x), v))
    out = dict(more, n=n, lo=lo, hi=hi, value=float(f(x)))
    for key, d in (("d1", d1), ("d2", d2), ("d3", d3)):
        out[key] = [float(t) for t in d(x)]
        assert all(math.isfinite(t) for t in out[key]), (more, key)
    assert any(out["d1"]), (more, "a golden without gradient tests nothing")
    return out


# One line per row of the unary table: name, domain, function.
# Forms: "plain" F = sum w f(x); "cube" (piecewise constant f) F = sum w f(x) x^3;
# "logical" F = sum w f(x < 0) x^3.
UNARY = [
    ("neg", -2, 2, "plain", jnp.negative),
    ("abs", -2, 2, "plain", jnp.abs),
    ("sign", -2, 2, "cube", jnp.sign),
    ("recip", 0.5, 2, "plain", lambda x: 1 / x),
    ("sqrt", 0.25, 2, "plain", jnp.sqrt),
    ("rsqrt", 0.5, 2, "plain", lambda x: 1 / jnp.sqrt(x)),
    ("exp", -2, 2, "plain", jnp.exp),
    ("expm1", -1, 1, "plain", jnp.expm1),
    ("log", 0.5, 4, "plain", jnp.log),
    ("log1p", -0.5, 2, "plain", jnp.log1p),
    ("sin", -4, 4, "plain", jnp.sin),
    ("cos", -4, 4, "plain", jnp.cos),
    ("tan", -1, 1, "plain", jnp.tan),
    ("atan", -2, 2, "plain", jnp.arctan),
    ("sinh", -2, 2, "plain", jnp.sinh),
    ("cosh", -2, 2, "plain", jnp.cosh),
    ("tanh", -2, 2, "plain", jnp.tanh),
    ("floor", -2, 2, "cube", jnp.floor),
    ("ceil", -2, 2, "cube", jnp.ceil),
    ("not", -2, 2, "logical", jnp.logical_not),
]

# The first half of x is a, the second b. Forms: "plain"; "predicate" F = sum w f(floor a, floor b) a^2 b;
# "logical" F = sum w f(a < 0, b < 0) a^2 b.
BINARY = [
    ("add", -2, 2, "plain", jnp.add),
    ("sub", -2, 2, "plain", jnp.subtract),
    ("mul", -2, 2, "plain", jnp.multiply),
    ("div", 0.5, 2, "plain", jnp.divide),
    ("pow", 0.5, 2, "plain", jnp.power),
    ("max", -2, 2, "plain", jnp.maximum),
    ("min", -2, 2, "plain", jnp.minimum),
    ("atan2", -2, 2, "plain", jnp.arctan2),
    ("eq", -1, 1, "predicate", jnp.equal),
    ("lt", -2, 2, "predicate", jnp.less),
    ("le", -2, 2, "predicate", jnp.less_equal),
    ("and", -2, 2, "logical", jnp.logical_and),
    ("or", -2, 2, "logical", jnp.logical_or),
]


def unary(form, f):
    if form == "plain":
        return lambda x: wsum(f(x))
    if form == "cube":
        return lambda x: wsum(f(x) * x * x * x)
    return lambda x: wsum(f(x < 0).astype(x.dtype) * x * x * x)


def binary(form, f):
    def g(x):
        a, b = x[: x.size // 2], x[x.size // 2 :]
        if form == "plain":
            return wsum(f(a, b))
        p = f(jnp.floor(a), jnp.floor(b)) if form == "predicate" else f(a < 0, b < 0)
        return wsum(p.astype(x.dtype) * a * a * b)

    return g


def split(x, *shapes):
    """Consecutive pieces of x under the given shapes."""
    at, out = 0, []
    for s in shapes:
        n = int(np.prod(s, dtype=int))
        out.append(x[at : at + n].reshape(s))
        at += n
    assert at == x.size
    return out


CASES = {}


def case(n, lo=-2.0, hi=2.0):
    def add(f):
        CASES[f.__name__] = (f, n, lo, hi)
        return f

    return add


@case(18)
def select(x):
    a, b, c = split(x, (6,), (6,), (6,))
    return wsin(jnp.where(a < b, b * c, a * a))


@case(11)
def select_broadcast(x):
    a, b, c = split(x, (2, 1), (3,), (2, 3))
    return wsin(jnp.where(c < 0, a, b) * c)


@case(12)
def reduce_sum_first(x):
    return wsin(x.reshape(3, 4).sum(0))


@case(12)
def reduce_sum_last(x):
    return wsin(x.reshape(3, 4).sum(1))


@case(24)
def reduce_sum_outer(x):
    return wsin(x.reshape(2, 3, 4).sum((0, 2)))


@case(6)
def reduce_sum_all(x):
    return jnp.sin(x.sum())


@case(24)
def reduce_mean_middle(x):
    return wsin(x.reshape(2, 3, 4).mean(1))


@case(12)
def reduce_max(x):
    return wsin(x.reshape(3, 4).max(1))


@case(24)
def reduce_max_pair(x):
    return wsin(x.reshape(2, 3, 4).max((0, 2)))


@case(12)
def reduce_min(x):
    return wsin(x.reshape(3, 4).min(0))


@case(20)
def dot_matrix(x):
    a, b = split(x, (3, 4), (4, 2))
    return wsin(a @ b)


@case(18)
def dot_vector_matrix(x):
    a, b = split(x, (3,), (3, 5))
    return wsin(a @ b)


@case(8)
def dot_inner(x):
    a, b = split(x, (4,), (4,))
    return jnp.sin(jnp.dot(a, b))


@case(7)
def dot_outer(x):
    a, b = split(x, (3,), (4,))
    return wsin(jnp.einsum("i,j->ij", a, b))


@case(20)
def dot_first_axes(x):
    a, b = split(x, (4, 3), (4, 2))
    return wsin(jnp.einsum("ki,kj->ij", a, b))


@case(20)
def dot_last_axes(x):
    a, b = split(x, (3, 4), (2, 4))
    return wsin(jnp.einsum("ik,jk->ij", a, b))


@case(24)
def dot_batch(x):
    a, b = split(x, (2, 3, 2), (2, 2, 3))
    return wsin(jnp.einsum("bik,bkj->bij", a, b))


@case(24)
def dot_batch_inner(x):
    a, b = split(x, (3, 2, 2), (2, 3, 2))
    return wsin(jnp.einsum("ibk,kjb->bij", a, b))


@case(24)
def dot_two_contracted(x):
    a, b = split(x, (2, 3, 2), (2, 2, 3))
    return wsin(jnp.einsum("pqi,jpq->ij", a, b))


@case(24)
def dot_two_contracted_crossed(x):
    a, b = split(x, (3, 2, 2), (2, 2, 3))
    return wsin(jnp.einsum("qpi,jpq->ij", a, b))


@case(24)
def dot_two_batches(x):
    a, b = split(x, (2, 3, 2), (3, 2, 2))
    return wsin(jnp.einsum("xyk,yxk->xy", a, b))


@case(24)
def dot_high_rank(x):
    a, b = split(x, (2, 2, 3), (3, 2, 2))
    return wsin(jnp.einsum("abk,kcd->abcd", a, b))


@case(12)
def dot_gram(x):
    a = x.reshape(3, 4)
    return wsin(a @ a.T)


@case(10)
def dot_repeated_rows(x):
    a, b = split(x, (2,), (2, 4))
    return wsin(jnp.broadcast_to(a, (3, 2)) @ b)


@case(12)
def reshape(x):
    return wsin(x.reshape(2, 3, 2).reshape(4, 3) * x.reshape(4, 3))


@case(9)
def broadcast(x):
    a, b, c = split(x, (3, 1), (4,), (2, 1, 1))
    return wsin(a * b * c)


@case(4)
def broadcast_scalar(x):
    a, b = split(x, (), (3,))
    return wsin(jnp.broadcast_to(a, (2, 3)) * b)


@case(24)
def permute(x):
    a = x.reshape(2, 3, 4)
    return wsin(a.transpose(2, 0, 1) * a.reshape(4, 2, 3))


@case(24)
def slice_axes(x):
    a = x.reshape(4, 6)
    return wsin(a[1:3, 2:6] * a[0:2, 0:4])


@case(12)
def pad(x):
    a = x.reshape(3, 4)
    return wsum(jnp.cos(jnp.pad(a, ((1, 2), (0, 1))) * 1.5))


@case(22)
def concat(x):
    a, b, c = split(x, (2, 3), (2, 1), (2, 7))
    return wsin(jnp.concatenate([a * a, b, c, a], 1))


@case(12)
def concat_first(x):
    a, b = split(x, (2, 3), (2, 3))
    return wsin(jnp.concatenate([a, b * a], 0))


@case(12)
def gather(x):
    return wsin(x.reshape(4, 3)[jnp.array([2, 0, 2, 3, 2])])


@case(12)
def gather_matrix_index(x):
    return wsin(x.reshape(4, 3)[jnp.array([[1, 3, 1], [0, 0, 3]])])


@case(15)
def scatter_add(x):
    a = x.reshape(5, 3)
    return wsin(jnp.zeros((4, 3)).at[jnp.array([2, 0, 2, 3, 2])].add(a))


@case(6)
def scatter_add_matrix_index(x):
    a = x.reshape(2, 3)
    return wsin(jnp.zeros((5,)).at[jnp.array([[1, 3, 1], [0, 0, 3]])].add(a * a))


@case(8)
def cast_integer(x):
    return wsum(x.astype(jnp.int64).astype(x.dtype) * x * x * x)


@case(8)
def cast_single(x):
    return wsin(x.astype(jnp.float32).astype(jnp.float64) * x)


@case(12)
def argmax(x):
    a = x.reshape(3, 4)
    return wsum(jnp.argmax(a, 1).astype(x.dtype) * (a * a * a).sum(1))


@case(12)
def argmax_first(x):
    a = x.reshape(3, 4)
    return wsum(jnp.argmax(a, 0).astype(x.dtype) * (a * a * a).sum(0))


@case(12)
def iota(x):
    return wsin(x.reshape(3, 4) * (1.0 + jnp.arange(4)))


@case(6)
def stop_gradient(x):
    return wsum(jax.lax.stop_gradient(jnp.sin(x)) * x * x * x)


@case(6)
def unused_variable(x):
    return wsin(x[:3])


@case(8)
def shared_value(x):
    y = jnp.tanh(x)
    z = y * x
    return wsum(z * y + jnp.exp(z))


@case(12)
def softmax(x):
    a = x.reshape(3, 4)
    e = jnp.exp(a - a.max(1, keepdims=True))
    return wsum(e / e.sum(1, keepdims=True))


@case(12)
def layer_norm(x):
    a = x.reshape(3, 4)
    c = a - a.mean(1, keepdims=True)
    return wsum(c / jnp.sqrt((c * c).mean(1, keepdims=True) + 0.125))


@case(8)
def powers(x):
    return wsum(x**3 + jnp.power(x * x + 0.5, 1.5) + 0.5 / (1 + x * x))


@case(8)
def power_of_negative(x):
    return wsum(x**2 + x**3)


@case(8)
def activations(x):
    return wsum(jax.nn.sigmoid(x) + jnp.log1p(jnp.exp(x)) + jax.nn.relu(x) * x + jnp.clip(x, -1, 1) * x)


@case(23)
def network(x):
    w1, b1, w2, b2 = split(x, (2, 4), (4,), (4, 2), (3,))
    points = jnp.asarray(inputs(6, -1.0, 1.0).reshape(3, 2))
    h = jnp.tanh(points @ w1 + b1)
    return jnp.mean((jnp.sin(h @ w2) * b2[:2] + b2[2]) ** 2)


# Derivatives by coordinates. P points of two coordinates, two outputs.
JET_POINTS = 4


def jet_parameters():
    p = jnp.asarray(inputs(2 * 5 + 5 + 5 * 4 + 4 + 4 * 2, -1.0, 1.0))
    return split(p, (2, 5), (5,), (5, 4), (4,), (4, 2))


def jet_network(p, x):
    w1, b1, w2, b2, w3 = p
    h = jnp.sin(2.0 * (x @ w1) + b1)
    h = jnp.tanh(h @ w2 + b2)
    return h @ w3


def jet_rational(p, x):
    """Quotient, powers, roots, products of fields, extremes and a choice."""
    z = x @ p[0][:, :2]
    a = jnp.sqrt(1.5 + jnp.sin(z)) / (2.0 + jnp.cos(x))
    b = jnp.power(1.0 + z * z, 1.75) - jnp.power(z, 3.0)
    c = jnp.maximum(z, 0.5 * z * z) + jnp.where(z < x, jnp.exp(-z), jnp.exp(-x))
    return a * b + c


JETS = {"network": jet_network, "rational": jet_rational}


def partials(u, order):
    """All partials of u: R^2 -> R^2 up to an order, as {(i, j): function}."""
    out = {(0, 0): u}
    for total in range(1, order + 1):
        for i in range(total + 1):
            j = total - i
            base, axis = ((i - 1, j), 0) if i > 0 else ((i, j - 1), 1)
            e = jnp.eye(2)[axis]
            out[(i, j)] = lambda x, f=out[base], e=e: jax.jvp(f, (x,), (e,))[1]
    return out


def jets():
    x = jnp.asarray(inputs(2 * JET_POINTS, -1.0, 1.0).reshape(JET_POINTS, 2))
    p = jet_parameters()
    flat = lambda a: [float(t) for t in jnp.ravel(a)]
    out = {}
    for name, field in JETS.items():
        at = lambda p, order=4: {k: jax.vmap(f)(x) for k, f in partials(lambda x: field(p, x), order).items()}
        d = at(p)

        def residual(p):
            d = at(p, 2)
            return wsum((d[2, 0] + d[0, 2]) ** 2 + d[1, 0] * d[0, 1] * d[0, 0])

        grads = jax.grad(residual)(p)
        out[name] = {
            "partials": {f"{i}{j}": flat(v) for (i, j), v in d.items() if i + j <= 3},
            "laplacian": flat(d[2, 0] + d[0, 2]),
            "biharmonic": flat(d[4, 0] + 2 * d[2, 2] + d[0, 4]),
            "third": flat(d[3, 0] - 0.5 * d[1, 2] + 3 * d[0, 3]),
            "residual": float(residual(p)),
            "gradient": [t for g in grads for t in flat(g)],
        }
    return out


def main():
    doc = {"made_by": f"make_goldens.py, jax {jax.__version__}, float64", "unary": {}, "binary": {}, "case": {}}
    for name, lo, hi, form, f in UNARY:
        doc["unary"][name] = golden(unary(form, f), 6, lo, hi, form=form)
    for name, lo, hi, form, f in BINARY:
        doc["binary"][name] = golden(binary(form, f), 12, lo, hi, form=form)
    for name, (f, n, lo, hi) in CASES.items():
        doc["case"][name] = golden(f, n, lo, hi)
    doc["jet"] = jets()
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "goldens.json")
    with open(path, "w") as out:
        lines = [f'"made_by": {json.dumps(doc["made_by"])}']
        for group in ("unary", "binary", "case", "jet"):
            rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in doc[group].items())
            lines.append(f'"{group}": {{\n{rows}\n}}')
        out.write("{" + ",\n".join(lines) + "}\n")
    print(path, os.path.getsize(path), "bytes")


if __name__ == "__main__":
    main()
