"""The reference workload on PyTorch, on the CPU (pip install torch).

    python benchmark_pytorch.py 200,1000 [F,A,B]

Prints JSON lines. Variants: "eager" (what users write: nested autograd in B), "compile" (torch.compile),
"jets" (hand-written propagation of the derivatives), "jets, compile". torch.compile needs a C++ compiler.
"""

import json
import math
import sys
import time
import warnings

import common
import torch

warnings.filterwarnings("ignore")


def emit(variant, workload, points, us):
    row = dict(framework="pytorch", variant=variant, workload=workload, points=points, us_per_step=us)
    print(json.dumps(row), flush=True)


def single(a):
    return torch.tensor(a, dtype=torch.float32)


class Net(torch.nn.Module):
    def __init__(self, outputs, seed):
        super().__init__()
        frequencies, layers = common.net(outputs, seed)
        self.register_buffer("B", single(frequencies))
        self.W = torch.nn.ParameterList([single(w) for w, _ in layers])
        self.b = torch.nn.ParameterList([single(b) for _, b in layers])

    def forward(self, x):
        z = (x @ self.B) * (2 * math.pi)
        h = torch.cat([z.sin(), z.cos()], 1)
        for i in range(common.LAYERS):
            h = torch.tanh(torch.addmm(self.b[i], h, self.W[i]))
        return torch.addmm(self.b[-1], h, self.W[-1])

    def jets(self, x):
        """Value, two first derivatives and the Laplacian, all through one product per layer."""
        n = x.shape[0]
        z = (x @ self.B) * (2 * math.pi)
        g = 2 * math.pi * self.B
        s, c = z.sin(), z.cos()
        v = torch.cat([s, c], 1)
        first = torch.stack([torch.cat([c * g[i], -s * g[i]], 1) for i in range(2)])
        channels = torch.cat([v[None], first, (-v * torch.cat([(g * g).sum(0)] * 2))[None]])
        for i in range(common.LAYERS + 1):
            y = (channels.reshape(4 * n, -1) @ self.W[i]).reshape(4, n, -1)
            v = y[0] + self.b[i]
            if i == common.LAYERS:
                return v, y[1], y[2], y[3]
            t = torch.tanh(v)
            slope = 1 - t * t
            bend = slope * (y[3] - 2 * t * (y[1] * y[1] + y[2] * y[2]))
            channels = torch.stack([t, slope * y[1], slope * y[2], bend])


def timed(call, seconds=1.5):
    """Microseconds per call: median of seven samples."""
    for _ in range(3):
        call()
    start = time.perf_counter()
    call()
    calls = max(1, int(seconds / 7 / (time.perf_counter() - start)))
    samples = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(calls):
            call()
        samples.append((time.perf_counter() - start) / calls * 1e6)
    return sorted(samples)[3]


def training(loss, parameters, compiled):
    adam = torch.optim.Adam(parameters, lr=common.LEARNING_RATE, fused=True)
    f = torch.compile(loss) if compiled else loss

    def step():
        adam.zero_grad(set_to_none=True)
        f().backward()
        adam.step()

    return step


def attempt(variant, workload, points, make):
    try:
        torch._dynamo.reset()
        emit(variant, workload, points, timed(make()))
    except Exception as e:  # a variant that this machine cannot build must not hide the others
        print(f"{variant} of {workload} at {points}: {type(e).__name__}: {e}"[:300], file=sys.stderr)


def main(sizes, workloads):
    for n in sizes:
        x, u, lap = (single(a) for a in common.data(n))
        if "F" in workloads:
            net = Net(2, 1)
            with torch.no_grad():
                attempt("eager", "F", n, lambda: lambda: net(x))
                attempt("compile", "F", n, lambda: (lambda f: lambda: f(x))(torch.compile(net.forward)))
        if "A" in workloads:
            for variant in ("eager", "compile"):
                net = Net(1, 2)
                loss = lambda: ((net(x) * lap + common.K * u) ** 2).mean()
                attempt(variant, "A", n, lambda: training(loss, net.parameters(), variant == "compile"))
        if "B" not in workloads:
            continue
        fu, fm = Net(2, 3), Net(1, 4)
        parameters = list(fu.parameters()) + list(fm.parameters())

        def autograd():
            q = x.clone().requires_grad_(True)
            U, M = fu(q), fm(q)
            d = lambda y: torch.autograd.grad(y.sum(), q, create_graph=True)[0]
            gm, r = d(M), []
            for k in range(2):
                g = d(U[:, k])
                laplacian = sum(d(g[:, i])[:, i] for i in range(2))
                r.append(M[:, 0] * laplacian + (gm * g).sum(1) + common.K * U[:, k])
            return ((U - u) ** 2).mean() + 0.01 * (torch.stack(r, 1) ** 2).mean()

        def propagated():
            U, Ux, Uy, L = fu.jets(x)
            M, Mx, My, _ = fm.jets(x)
            r = M * L + Mx * Ux + My * Uy + common.K * U
            return ((U - u) ** 2).mean() + 0.01 * (r**2).mean()

        a, b = autograd().item(), propagated().item()
        assert abs(a / b - 1) < 1e-4, (a, b)
        attempt("eager", "B", n, lambda: training(autograd, parameters, False))
        attempt("jets", "B", n, lambda: training(propagated, parameters, False))
        attempt("jets, compile", "B", n, lambda: training(propagated, parameters, True))


if __name__ == "__main__":
    main(
        [int(s) for s in (sys.argv[1:] or ["200,1000"])[0].split(",")],
        (sys.argv[2:] or ["F,A,B"])[0].split(","),
    )
