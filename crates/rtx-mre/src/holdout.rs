//! Held-out pixels, for an honest error of a fitted field.
//!
//! Scattered pixels test interpolation between near neighbours; blocks test whether the model
//! carries the wave across a gap, where neighbours do not help.

use ndarray::Array3;

/// A splitmix64 stream: small, and the same on every platform.
/// Source: G. L. Steele, D. Lea, C. H. Flood, OOPSLA 2014.
#[derive(Debug, Clone)]
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound` (> 0); the bias of the remainder is below 2^-40 for any image.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Brings a random sample of `count` items to the front.
    fn shuffle_front<T>(&mut self, items: &mut [T], count: usize) {
        for i in 0..count.min(items.len()) {
            let j = i + self.below(items.len() - i);
            items.swap(i, j);
        }
    }
}

/// Pixels `[x, y, z]` to hold out, scattered over the mask: `fraction` of them, rounded.
///
/// `fraction` is clamped to 0..=1; the same seed gives the same pixels.
pub fn scattered(mask: &Array3<bool>, fraction: f64, seed: u64) -> Array3<bool> {
    let mut inside: Vec<_> = mask
        .indexed_iter()
        .filter(|&(_, &inside)| inside)
        .map(|(at, _)| at)
        .collect();
    let count = target(inside.len(), fraction);
    SplitMix64(seed).shuffle_front(&mut inside, count);
    let mut out = Array3::from_elem(mask.dim(), false);
    inside[..count].iter().for_each(|&at| out[at] = true);
    out
}

/// Square blocks of `side` pixels in the plane of each slice to hold out, on a grid with a random
/// origin, until `fraction` of the mask is reached; the last block may go beyond it.
///
/// `side` of zero counts as one; the same seed gives the same blocks.
pub fn blocks(mask: &Array3<bool>, fraction: f64, side: usize, seed: u64) -> Array3<bool> {
    let side = side.max(1);
    let mut random = SplitMix64(seed);
    let (shift_x, shift_y) = (random.below(side), random.below(side));
    let mut members = std::collections::BTreeMap::<_, Vec<_>>::new();
    for ((x, y, z), _) in mask.indexed_iter().filter(|&(_, &inside)| inside) {
        let along = |at: usize, shift: usize| at.saturating_add(shift) / side;
        let block = (along(x, shift_x), along(y, shift_y), z);
        members.entry(block).or_default().push((x, y, z));
    }
    let mut order: Vec<_> = members.into_values().collect();
    let count = order.len();
    random.shuffle_front(&mut order, count);
    let wanted = target(order.iter().map(Vec::len).sum(), fraction);
    let mut out = Array3::from_elem(mask.dim(), false);
    let mut held = 0;
    for block in order {
        if held >= wanted {
            break;
        }
        held += block.len();
        block.into_iter().for_each(|at| out[at] = true);
    }
    out
}

fn target(pixels: usize, fraction: f64) -> usize {
    let fraction = if fraction.is_nan() {
        0.0
    } else {
        fraction.clamp(0.0, 1.0)
    };
    (pixels as f64 * fraction).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mask::count;

    fn disc() -> Array3<bool> {
        Array3::from_shape_fn((40, 30, 2), |(x, y, _)| {
            (x as f64 - 19.5).powi(2) + (y as f64 - 14.5).powi(2) < 180.0
        })
    }

    #[test]
    fn the_stream_is_the_published_one() {
        let mut random = SplitMix64(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn scattered_pixels_have_the_exact_count_and_follow_the_seed() {
        let mask = disc();
        let held = scattered(&mask, 0.2, 7);
        assert_eq!(count(&held), (count(&mask) as f64 * 0.2).round() as usize);
        assert!(
            held.iter()
                .zip(&mask)
                .all(|(&held, &inside)| inside || !held)
        );
        assert_eq!(held, scattered(&mask, 0.2, 7));
        assert_ne!(held, scattered(&mask, 0.2, 8));
        assert_eq!(count(&scattered(&mask, 0.0, 7)), 0);
        assert_eq!(scattered(&mask, 1.5, 7), mask);
    }

    #[test]
    fn blocks_reach_the_fraction_and_hold_together() {
        let mask = disc();
        let held = blocks(&mask, 0.2, 6, 3);
        let (found, all) = (count(&held), count(&mask));
        assert!(found as f64 >= 0.2 * all as f64 && found as f64 <= 0.2 * all as f64 + 36.0);
        // Most neighbours of a held pixel are held: about 1/6 of the pixels sit on a block's side.
        let (mut same, mut pairs) = (0, 0);
        for ((x, y, z), &is_held) in held.indexed_iter() {
            if is_held && x + 1 < 40 && mask[[x + 1, y, z]] {
                pairs += 1;
                same += usize::from(held[[x + 1, y, z]]);
            }
        }
        assert!(same * 10 > pairs * 7, "{same} of {pairs}");
        assert_eq!(held, blocks(&mask, 0.2, 6, 3));
        assert_ne!(held, blocks(&mask, 0.2, 6, 4));
        // One block takes a whole slice.
        assert_eq!(count(&blocks(&mask, 0.2, usize::MAX, 3)), all / 2);
    }
}
