"""Reference for the Burgers example, by a method that knows nothing of networks or grids.

u_t + u u_x = nu u_xx on [-1, 1] with u(x, 0) = -sin(pi x), u(+-1, t) = 0 has a closed form by the
Cole-Hopf transformation; its two integrals are taken by Gauss-Hermite quadrature (Basdevant et al. 1986,
Computers & Fluids 14, 23-41). Run with numpy: writes burgers.csv next to this file.
"""
from pathlib import Path

import numpy as np

NU = 0.01 / np.pi


def solution(x, t, nodes):
    """u(x, t) with `nodes` quadrature nodes, t > 0."""
    z, w = np.polynomial.hermite.hermgauss(nodes)
    y = x[:, None] - np.sqrt(4 * NU * t) * z[None, :]
    # exp(-cos(pi y) / (2 pi nu)), shifted by its largest value so that it does not overflow.
    f = np.exp(-(1 + np.cos(np.pi * y)) / (2 * np.pi * NU))
    return -((w * np.sin(np.pi * y) * f).sum(1)) / (w * f).sum(1)


def main():
    x = np.linspace(-1, 1, 81)
    rows, worst = [], 0.0
    for t in (0.25, 0.5, 0.75, 1.0):
        u, check = solution(x, t, 200), solution(x, t, 160)
        worst = max(worst, np.abs(u - check).max())
        rows += [f"{a:.4f},{t},{b:.10f}" for a, b in zip(x, u)]
    assert worst < 1e-9, worst
    Path(__file__).with_name("burgers.csv").write_text("x,t,u\n" + "\n".join(rows) + "\n")
    print(f"{len(rows)} values, quadrature error about {worst:.1e}")


if __name__ == "__main__":
    main()
