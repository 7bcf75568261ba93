//! Numbers from a counter: the same in every language, all exact in single precision.

use rtx_tensor::{DType, Device, Shape, Tensor};

/// A uniform multiple of 2^-24 in [0, 1): the upper bits of SplitMix64 (Steele, Lea, Flood 2014) at position
/// `index` of the stream `stream`.
pub fn uniform(stream: u64, index: u64) -> f64 {
    let counter = (stream << 32).wrapping_add(index + 1);
    let mut z = counter.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 40) as f64 / f64::from(1u32 << 24)
}

/// `n` numbers in [-limit, limit), rounded to single precision.
pub fn symmetric(stream: u64, n: usize, limit: f64) -> Vec<f64> {
    (0..n as u64)
        .map(|i| f64::from(((2.0 * uniform(stream, i) - 1.0) * limit) as f32))
        .collect()
}

/// `n` nearly normal numbers: the sum of twelve uniform ones, less six.
pub fn normal(stream: u64, n: usize) -> Vec<f64> {
    (0..n as u64)
        .map(|i| (0..12).map(|k| uniform(stream, 12 * i + k)).sum::<f64>() - 6.0)
        .collect()
}

/// Rounds to a multiple of 2^-20, which hides the last bits of elementary functions.
fn coarse(v: f64) -> f64 {
    const STEPS: f64 = (1u32 << 20) as f64;
    (v * STEPS + 0.5).floor() / STEPS
}

/// Points in the unit square, `[n, 2]`, row-major.
pub fn points(n: usize) -> Vec<f64> {
    (0..2 * n as u64).map(|i| uniform(100, i)).collect()
}

/// The observed field at the points, `[n, 2]`.
pub fn field(points: &[f64]) -> Vec<f64> {
    points
        .chunks(2)
        .flat_map(|p| {
            let (x, y) = (p[0], p[1]);
            [
                coarse((6.0 * x).sin() * (4.0 * y).cos()),
                coarse((6.0 * x + y).cos()),
            ]
        })
        .collect()
}

/// An array of these numbers.
pub(crate) fn array(data: &[f64], shape: &[usize], dtype: DType, device: &Device) -> Tensor {
    Tensor::from_f64(data, Shape::of(shape), dtype, device)
}

#[cfg(test)]
mod tests {
    /// First outputs of SplitMix64 with seed 0, upper 24 bits.
    #[test]
    fn known_answers() {
        let expected = [0xE220A8u32, 0x6E789E, 0x06C45D];
        for (i, e) in expected.into_iter().enumerate() {
            assert_eq!(
                super::uniform(0, i as u64),
                f64::from(e) / f64::from(1u32 << 24)
            );
        }
    }
}
