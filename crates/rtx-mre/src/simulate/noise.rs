//! Counter-based Gaussian noise: the same seed gives the same bits on every machine.
//!
//! Philox4x32-10 (J. Salmon et al., *Parallel random numbers: as easy as 1, 2, 3*, SC 2011) and the
//! Box-Muller transform with the logarithm, sine and cosine of the `libm` crate: those of the standard
//! library come from the system and differ between systems in the last bit.

use ndarray::{Array3, ArrayView3, Axis};
use num_complex::Complex64;

/// Philox4x32 with ten rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..10 {
        let a = u64::from(counter[0]) * 0xD251_1F53;
        let b = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    counter
}

/// A complex normal number of mean square 1, its real and imaginary parts independent.
fn complex_normal(seed: u64, stream: u64, index: u64) -> Complex64 {
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([i0, i1], [s0, s1]) = (halves(index), halves(stream));
    let bits = philox([i0, i1, s0, s1], halves(seed));
    // 53 bits, moved by half a step into the open interval (0, 1).
    let uniform = |low: u32, high: u32| {
        let word = u64::from(high) << 32 | u64::from(low);
        ((word >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    };
    let radius = libm::sqrt(-libm::log(uniform(bits[0], bits[1])));
    let (sin, cos) = libm::sincos(std::f64::consts::TAU * uniform(bits[2], bits[3]));
    Complex64::new(radius * cos, radius * sin)
}

/// `u` of axes (frequency, x, y) plus complex Gaussian noise of `power` times the mean of |u|^2 at
/// each frequency.
pub(super) fn add_noise(u: ArrayView3<Complex64>, power: f64, seed: u64) -> Array3<Complex64> {
    let mut noisy = u.to_owned();
    if power == 0.0 {
        return noisy;
    }
    for (stream, mut field) in noisy.axis_iter_mut(Axis(0)).enumerate() {
        let mean_square = field.iter().map(Complex64::norm_sqr).sum::<f64>() / field.len() as f64;
        let scale = (power * mean_square).sqrt();
        for (index, value) in field.iter_mut().enumerate() {
            *value += scale * complex_normal(seed, stream as u64, index as u64);
        }
    }
    noisy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers published with the Random123 library.
    #[test]
    fn philox_gives_the_known_answers() {
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }

    #[test]
    fn normals_have_unit_power() {
        let n = 100_000;
        let draws: Vec<Complex64> = (0..n).map(|i| complex_normal(7, 2, i)).collect();
        let mean: Complex64 = draws.iter().sum::<Complex64>() / n as f64;
        let power = draws.iter().map(Complex64::norm_sqr).sum::<f64>() / n as f64;
        let real = draws.iter().map(|z| z.re * z.re).sum::<f64>() / n as f64;
        let square: Complex64 = draws.iter().map(|z| z * z).sum::<Complex64>() / n as f64;
        let fourth = draws.iter().map(|z| z.re.powi(4)).sum::<f64>() / n as f64;
        assert!(mean.norm() < 0.01, "{mean}");
        assert!(
            (power - 1.0).abs() < 0.015 && (real - 0.5).abs() < 0.01,
            "{power} {real}"
        );
        assert!(square.norm() < 0.015, "{square}");
        assert!((fourth / (real * real) - 3.0).abs() < 0.1, "{fourth}");
    }

    /// The value was computed by an independent program; a change of bits changes published phantoms.
    #[test]
    fn the_bits_are_fixed() {
        let z = complex_normal(7, 2, 3);
        assert_eq!(
            (z.re.to_bits(), z.im.to_bits()),
            (0xbfdb_42f9_41b0_c7cb, 0xbff9_2597_f6cc_f556)
        );
    }
}
