//! Where points of a unit cube are put.

use rtx_ir::RandomKind;
use rtx_ir::random::sample;

/// How points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// Independent uniform points of the stream `seed` (counter-based: point `i` depends on the seed
    /// and on `i` alone).
    Random(u64),
    /// The Halton sequence (Halton 1960): fills space evenly at every count.
    Halton,
    /// Centres of a regular lattice with the same number of cells along every axis; the largest such
    /// lattice with at most the number of points asked for, and at least one.
    Grid,
}

impl Sampling {
    /// About `n` points of the unit cube, row-major.
    pub(crate) fn unit(self, n: usize, dims: usize) -> Vec<f64> {
        if dims == 0 {
            return Vec::new();
        }
        match self {
            Sampling::Random(seed) => (0..n * dims)
                .map(|i| sample(RandomKind::Uniform, seed, i as u64, false))
                .collect(),
            Sampling::Halton => {
                let bases = primes(dims);
                (1..=n)
                    .flat_map(|i| bases.iter().map(move |&b| radical_inverse(i, b)))
                    .collect()
            }
            Sampling::Grid => {
                let k = cells(n, dims);
                lattice(&vec![k; dims])
                    .into_iter()
                    .map(|i| (i as f64 + 0.5) / k as f64)
                    .collect()
            }
        }
    }

    /// Number of points that [`unit`](Self::unit) gives.
    pub(crate) fn count(self, n: usize, dims: usize) -> usize {
        match self {
            Sampling::Grid => cells(n, dims).pow(dims as u32),
            _ => n,
        }
    }
}

/// Largest k with k^dims <= n, at least 1.
fn cells(n: usize, dims: usize) -> usize {
    let mut k = 1usize;
    while (k + 1)
        .checked_pow(dims.max(1) as u32)
        .is_some_and(|p| p <= n)
    {
        k += 1;
    }
    k
}

/// All indices of an array of these extents in row-major order, one row per element.
pub(crate) fn lattice(extents: &[usize]) -> Vec<usize> {
    let total: usize = extents.iter().product();
    let mut all = Vec::with_capacity(total * extents.len());
    for flat in 0..total {
        let mut rest = flat;
        let start = all.len();
        for &e in extents.iter().rev() {
            all.push(rest % e);
            rest /= e;
        }
        all[start..].reverse();
    }
    all
}

fn primes(count: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::with_capacity(count);
    let mut n = 2;
    while found.len() < count {
        if found.iter().all(|p| n % p != 0) {
            found.push(n);
        }
        n += 1;
    }
    found
}

/// The digits of `i` in this base, mirrored at the point.
fn radical_inverse(mut i: usize, base: usize) -> f64 {
    let (mut value, mut digit) = (0.0, 1.0 / base as f64);
    while i > 0 {
        value += (i % base) as f64 * digit;
        i /= base;
        digit /= base as f64;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halton_starts_as_published() {
        let p = Sampling::Halton.unit(4, 2);
        let expected = [
            0.5,
            1.0 / 3.0,
            0.25,
            2.0 / 3.0,
            0.75,
            1.0 / 9.0,
            0.125,
            4.0 / 9.0,
        ];
        for (a, b) in p.iter().zip(expected) {
            assert!((a - b).abs() < 1e-15);
        }
    }

    #[test]
    fn every_sampling_stays_inside_and_keeps_its_count() {
        for s in [Sampling::Random(3), Sampling::Halton, Sampling::Grid] {
            let p = s.unit(50, 3);
            assert_eq!(p.len(), 3 * s.count(50, 3));
            assert!(p.iter().all(|v| (0.0..1.0).contains(v)));
        }
        assert_eq!(Sampling::Grid.count(50, 3), 27);
    }

    #[test]
    fn random_points_do_not_depend_on_the_count() {
        let (a, b) = (
            Sampling::Random(9).unit(5, 2),
            Sampling::Random(9).unit(50, 2),
        );
        assert_eq!(a[..], b[..10]);
        assert_ne!(a, Sampling::Random(10).unit(5, 2));
    }

    #[test]
    fn lattice_is_row_major() {
        assert_eq!(lattice(&[2, 2]), vec![0, 0, 0, 1, 1, 0, 1, 1]);
    }
}
