"""Our times and those of PyTorch and JAX on this machine's CPU, in one run and one table.

    python compare.py [--sizes 200,1000] [--workloads F,A,B] [--json FILE] [--peers jax,pytorch] [--rtx BINARY]

Needs cargo, or a built `rtx`, and `pip install jax optax torch`; a peer that cannot be imported is left out and
said so. The ratio is the best time of all peers' variants over ours: above 1 we are faster. "eager" is the ratio
to what users write (PyTorch eager; nested autograd in B). "peak" is our needed arithmetic per second over that of
the peers' fastest product of square matrices (1,024 and 2,048) on the same cores.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


PRODUCT = """
import time, {module}
a = {make}
best = min((lambda s: ({run}, time.perf_counter() - s)[1])(time.perf_counter()) for _ in range(20))
print(2 * {n} ** 3 / best / 1e9)
"""
PRODUCTS = {
    "torch": ("torch.rand({n}, {n})", "a @ a"),
    "jax": ("jax.random.uniform(jax.random.key(0), ({n}, {n}))", "(a @ a).block_until_ready()"),
}


def peak():
    """GFLOP/s of the fastest product of float32 matrices."""
    best = 0.0
    for module, (make, run) in PRODUCTS.items():
        for n in (1024, 2048):
            if importlib.util.find_spec(module):
                script = PRODUCT.format(module=module, make=make.format(n=n), run=run, n=n)
                environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}
                done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
                best = max(best, float(done.stdout or 0))
    return best


def ours(sizes, workloads, rtx):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ours.json")
        command = [rtx, "bench", "pinn", "--device", "cpu"] if rtx else ["cargo", "bench", "--quiet", "-p", "pinn_mre_helmholtz", "--"]
        command += ["--json", path, "--sizes", sizes, "--workloads", workloads]
        subprocess.run(command, cwd=HERE, check=True, stdout=subprocess.DEVNULL)
        with open(path) as f:
            return json.load(f)


def peer(name, sizes, workloads):
    module = {"jax": "jax", "pytorch": "torch"}[name]
    if importlib.util.find_spec(module) is None:
        print(f"{name} is not installed: left out", file=sys.stderr)
        return []
    command = [sys.executable, os.path.join(HERE, f"benchmark_{name}.py"), sizes, workloads]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    sys.stderr.write(done.stderr[-2000:] if done.returncode else "")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="200,1000")
    parser.add_argument("--workloads", default="F,A,B")
    parser.add_argument("--peers", default="jax,pytorch")
    parser.add_argument("--json")
    parser.add_argument("--rtx", type=os.path.abspath)
    a = parser.parse_args()
    gflops = peak()
    mine = ours(a.sizes, a.workloads, a.rtx)
    theirs = [row for name in a.peers.split(",") for row in peer(name, a.sizes, a.workloads)]
    # Ours once more after the peers, so that a machine that slowed down meanwhile shows.
    again = ours(a.sizes, a.workloads, a.rtx)
    print(f"fastest product of square matrices: {gflops:.0f} GFLOP/s")
    print(f"{'':9} {'points':>7} {'ours us':>10} {'again us':>10} {'peak':>5} {'best peer us':>13}  {'variant':34} {'ratio':>6} {'eager':>6}")
    for row, second in zip(mine, again):
        cell = [t for t in theirs if (t["workload"], t["points"]) == (row["workload"], row["points"])]
        us = min(row["us_per_step"], second["us_per_step"])
        line = f"{row['workload']:9} {row['points']:>7} {row['us_per_step']:>10.1f} {second['us_per_step']:>10.1f}"
        line += f" {row['gflops'] * row['us_per_step'] / us / gflops:>5.0%}" if gflops else f" {'':5}"
        if cell:
            best = min(cell, key=lambda t: t["us_per_step"])
            name = f"{best['framework']} {best['variant']}"
            line += f" {best['us_per_step']:>13.1f}  {name:34} {best['us_per_step'] / us:>6.2f}"
            eager = [t["us_per_step"] for t in cell if t["framework"] == "pytorch" and t["variant"] == "eager"]
            line += f" {eager[0] / us:>6.2f}" if eager else ""
        print(line)
    if a.json:
        with open(a.json, "w") as f:
            json.dump({"ours": mine, "ours_again": again, "peers": theirs}, f, indent=1)


if __name__ == "__main__":
    main()
