//! Counter-based random numbers: Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy
//! as 1, 2, 3"). Element `i` of an array depends on the key and on `i` alone, so every backend, block
//! size and thread count gives the same numbers.

use crate::RandomKind;

const M0: u32 = 0xD251_1F53;
const M1: u32 = 0xCD9E_8D57;
const W0: u32 = 0x9E37_79B9;
const W1: u32 = 0xBB67_AE85;

/// Ten rounds of Philox 4x32 on a 128-bit counter under a 64-bit key.
pub fn philox(mut c: [u32; 4], key: u64) -> [u32; 4] {
    let (mut k0, mut k1) = (key as u32, (key >> 32) as u32);
    for _ in 0..10 {
        let p0 = u64::from(M0) * u64::from(c[0]);
        let p1 = u64::from(M1) * u64::from(c[2]);
        c = [
            (p1 >> 32) as u32 ^ c[1] ^ k0,
            p1 as u32,
            (p0 >> 32) as u32 ^ c[3] ^ k1,
            p0 as u32,
        ];
        k0 = k0.wrapping_add(W0);
        k1 = k1.wrapping_add(W1);
    }
    c
}

/// A uniform number in [0, 1) from 53 bits.
fn unit(hi: u32, lo: u32) -> f64 {
    ((u64::from(hi) << 21) ^ (u64::from(lo) >> 11)) as f64 / (1u64 << 53) as f64
}

/// Element `index` of the stream of `key`. The result is rounded to single precision downwards where
/// `single` is set, so that it stays below one.
pub fn sample(kind: RandomKind, key: u64, index: u64, single: bool) -> f64 {
    let c = philox([index as u32, (index >> 32) as u32, 0, 0], key);
    let (u, v) = (unit(c[0], c[1]), unit(c[2], c[3]));
    match kind {
        RandomKind::Uniform if single => f64::from(c[0] >> 8) / f64::from(1u32 << 24),
        RandomKind::Uniform => u,
        RandomKind::Normal => {
            (-2.0 * (1.0 - u).ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the Random123 distribution for Philox 4x32-10.
    #[test]
    fn philox_known_answers() {
        assert_eq!(
            philox([0; 4], 0),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        let ones = philox([u32::MAX; 4], u64::MAX);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
    }

    #[test]
    fn moments() {
        let n = 100_000u64;
        for (kind, mean, var) in [
            (RandomKind::Uniform, 0.5, 1.0 / 12.0),
            (RandomKind::Normal, 0.0, 1.0),
        ] {
            let v: Vec<f64> = (0..n).map(|i| sample(kind, 7, i, false)).collect();
            let m = v.iter().sum::<f64>() / n as f64;
            let s = v.iter().map(|x| (x - m) * (x - m)).sum::<f64>() / n as f64;
            assert!(
                (m - mean).abs() < 0.01 && (s - var).abs() < 0.02,
                "{kind:?}: {m} {s}"
            );
        }
    }
}
