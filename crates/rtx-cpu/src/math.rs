//! Single-precision functions without branches, so that loops over them become vector code.
//!
//! Polynomials and range reductions are the classical ones of the Cephes library (Moshier 1989); errors are
//! below 2 units in the last place on the ranges stated, checked by tests against double precision.

/// Adding and subtracting this rounds a float to the nearest integer and leaves it in the low bits.
const ROUND: f32 = 12_582_912.0;

/// e^x
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let y = x.clamp(-104.0, 89.0);
    let t = y.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-0.693_359_4, y);
    let r = n.mul_add(2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4f32;
    p = p.mul_add(r, 1.398_199_9e-3);
    p = p.mul_add(r, 8.333_452e-3);
    p = p.mul_add(r, 4.166_579_6e-2);
    p = p.mul_add(r, 1.666_666_5e-1);
    p = p.mul_add(r, 5e-1);
    let p = p.mul_add(r * r, r) + 1.0;
    // 2^n in two factors, so that results in the subnormal range and the overflow come out right.
    let i = t.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = i >> 1;
    let scale = |k: i32| f32::from_bits(((k + 127) << 23) as u32);
    let v = p * scale(half) * scale(i - half);
    if x.is_nan() { x } else { v }
}

/// Hyperbolic tangent
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let e = exp((2.0 * a).min(40.0));
    let large = 1.0 - 2.0 / (e + 1.0);
    let z = x * x;
    let mut p = -5.704_988_7e-3f32;
    p = p.mul_add(z, 2.063_909e-2);
    p = p.mul_add(z, -5.373_971_6e-2);
    p = p.mul_add(z, 1.333_144_2e-1);
    p = p.mul_add(z, -3.333_328e-1);
    let small = (p * z).mul_add(a, a);
    let v = if a < 0.625 { small } else { large };
    if x.is_nan() { x } else { v.copysign(x) }
}

/// Largest argument of [`sin`] and [`cos`]; beyond it the loops call the standard library.
pub(crate) const TRIG_LIMIT: f32 = 65_536.0;

/// Quadrant and remainder of x by pi/2.
#[inline(always)]
fn reduce(x: f32) -> (u32, f32) {
    let t = x.mul_add(std::f32::consts::FRAC_2_PI, ROUND);
    let n = t - ROUND;
    let r = n.mul_add(-1.570_796_4, x);
    let r = n.mul_add(4.371_139e-8, r);
    let r = n.mul_add(1.715_121_6e-15, r);
    (t.to_bits(), r)
}

#[inline(always)]
fn sin_poly(r: f32) -> f32 {
    let z = r * r;
    let mut p = -1.951_529_6e-4f32;
    p = p.mul_add(z, 8.332_161e-3);
    p = p.mul_add(z, -1.666_665_5e-1);
    (p * z).mul_add(r, r)
}

#[inline(always)]
fn cos_poly(r: f32) -> f32 {
    let z = r * r;
    let mut p = 2.443_315_7e-5f32;
    p = p.mul_add(z, -1.388_731_6e-3);
    p = p.mul_add(z, 4.166_664_6e-2);
    (p * z).mul_add(z, z.mul_add(-0.5, 1.0))
}

#[inline(always)]
fn quadrant(q: u32, r: f32) -> f32 {
    let v = if q & 1 == 0 { sin_poly(r) } else { cos_poly(r) };
    f32::from_bits(v.to_bits() ^ ((q & 2) << 30))
}

/// Sine for |x| up to [`TRIG_LIMIT`]
#[inline(always)]
pub(crate) fn sin(x: f32) -> f32 {
    let (q, r) = reduce(x);
    quadrant(q, r)
}

/// Cosine for |x| up to [`TRIG_LIMIT`]
#[inline(always)]
pub(crate) fn cos(x: f32) -> f32 {
    let (q, r) = reduce(x);
    quadrant(q.wrapping_add(1), r)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest error in units in the last place of the true value (of `floor` at least).
    fn worst(f: fn(f32) -> f32, g: fn(f64) -> f64, low: f32, high: f32, floor: f64) -> f64 {
        let n = 200_000;
        (0..=n)
            .map(|i| {
                let x = low + (high - low) * (i as f32 / n as f32);
                let t = g(f64::from(x));
                let ulp = (t.abs().max(floor) * f64::from(f32::EPSILON)).max(1e-45);
                rtx_testing::difference(f64::from(f(x)), t, rtx_testing::Nan::Fails) / ulp
            })
            .fold(0.0, f64::max)
    }

    #[test]
    fn within_two_units_in_the_last_place() {
        assert!(worst(exp, f64::exp, -87.0, 88.7, 0.0) < 2.0);
        assert!(worst(tanh, f64::tanh, -12.0, 12.0, 0.0) < 2.0);
        assert!(worst(tanh, f64::tanh, -0.7, 0.7, 0.0) < 2.0);
        assert!(worst(sin, f64::sin, -400.0, 400.0, 0.05) < 2.0);
        assert!(worst(cos, f64::cos, -400.0, 400.0, 0.05) < 2.0);
        assert!(worst(sin, f64::sin, -60_000.0, 60_000.0, 1.0) < 2.0);
    }

    #[test]
    fn special_values() {
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan() && tanh(f32::NAN).is_nan() && sin(f32::INFINITY).is_nan());
        assert_eq!(tanh(f32::INFINITY), 1.0);
        assert_eq!(tanh(-50.0), -1.0);
        assert_eq!(tanh(-0.0).to_bits(), (-0.0f32).to_bits());
        assert!(exp(-100.0) > 0.0);
    }
}
