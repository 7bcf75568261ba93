//! What the tests of all crates share: comparisons of numbers that a NaN cannot pass, the count of cases that a random
//! test leaves out, and the files of the folder `shared` beside the repository.
//!
//! A test that needs something which a machine may lack is marked `#[ignore = "needs ..."]` and lies in a module named
//! `needs_shared` (files beside the repository), `needs_gxx` (a C++ compiler), `needs_nvrtc` or `needs_gpu`: a plain
//! `cargo test` names it as left out, `cargo test -- --ignored needs_shared` runs it, and without the thing it fails.

use std::path::{Path, PathBuf};

/// What a NaN on both sides means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nan {
    /// Nothing may be NaN.
    Fails,
    /// The operation may give NaN, so NaN on both sides is equal.
    Equal,
}

/// Distance of two numbers; infinite for a NaN against a number and for different infinities.
pub fn difference(found: f64, expected: f64, nan: Nan) -> f64 {
    if found == expected || (nan == Nan::Equal && found.is_nan() && expected.is_nan()) {
        return 0.0;
    }
    let d = (found - expected).abs();
    if d.is_nan() { f64::INFINITY } else { d }
}

/// Largest distance of two lists, element by element, by the rule of [`difference`].
///
/// # Panics
/// Where the lists differ in length.
#[track_caller]
pub fn largest_difference(found: &[f64], expected: &[f64], nan: Nan) -> f64 {
    assert_eq!(found.len(), expected.len(), "number of elements");
    let pairs = found.iter().zip(expected);
    pairs.fold(0.0, |m, (f, e)| f64::max(m, difference(*f, *e, nan)))
}

/// Panics with the first element that is more than `allowed` away from the expected one.
#[track_caller]
pub fn assert_close(what: &str, found: &[f64], expected: &[f64], allowed: f64, nan: Nan) {
    assert_eq!(found.len(), expected.len(), "{what}: number of elements");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        let d = difference(*f, *e, nan);
        assert!(
            d <= allowed,
            "{what}: element {i} is {f:e}, expected {e:e} (allowed {allowed:e})"
        );
    }
}

/// Norm of the difference over the norm of the expected list; infinite where something is not finite.
///
/// # Panics
/// Where the lists differ in length.
#[track_caller]
pub fn relative_error(found: &[f64], expected: &[f64]) -> f64 {
    assert_eq!(found.len(), expected.len(), "number of elements");
    let (mut error, mut norm) = (0.0, 0.0);
    for (f, e) in found.iter().zip(expected) {
        error += difference(*f, *e, Nan::Fails).powi(2);
        norm += e * e;
    }
    if error == 0.0 {
        0.0
    } else {
        (error / norm).sqrt()
    }
}

/// Counts the cases of a random test and those that say nothing, which must stay few.
#[derive(Debug, Default)]
pub struct Tally {
    tried: usize,
    left_out: usize,
}

impl Tally {
    /// A case that was compared.
    pub fn compared(&mut self) {
        self.tried += 1;
    }

    /// A case that says nothing.
    pub fn left_out(&mut self) {
        self.tried += 1;
        self.left_out += 1;
    }

    /// Panics where nothing was tried or more than `share` of the cases were left out.
    #[track_caller]
    pub fn assert_few_left_out(&self, share: f64) {
        assert!(self.tried > 0, "no case was tried");
        let found = self.left_out as f64 / self.tried as f64;
        assert!(
            found <= share,
            "{} of {} cases were left out (allowed {:.0} %)",
            self.left_out,
            self.tried,
            share * 100.0
        );
    }
}

/// A file of the folder `shared` beside the repository.
///
/// # Panics
/// Where it is absent: such tests are `#[ignore]`d and run where the folder is.
#[track_caller]
pub fn shared(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared")
        .join(name);
    assert!(
        path.exists(),
        "{} is absent; this test needs the folder shared beside the repository",
        path.display()
    );
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAN: f64 = f64::NAN;
    const INF: f64 = f64::INFINITY;

    #[test]
    fn nan_never_passes_unasked() {
        assert_eq!(
            largest_difference(&[NAN, 1.0], &[0.0, 1.0], Nan::Equal),
            INF
        );
        assert_eq!(largest_difference(&[0.0], &[NAN], Nan::Equal), INF);
        assert_eq!(largest_difference(&[NAN], &[NAN], Nan::Fails), INF);
        assert_eq!(
            largest_difference(&[NAN, 2.0], &[NAN, 1.5], Nan::Equal),
            0.5
        );
        assert_eq!(difference(INF, -INF, Nan::Equal), INF);
        assert_eq!(difference(INF, INF, Nan::Fails), 0.0);
        assert_eq!(relative_error(&[NAN, 1.0], &[1.0, 1.0]), INF);
        assert!(!relative_error(&[1.0, 1.0], &[1.0, NAN]).is_finite());
    }

    #[test]
    #[should_panic(expected = "element 1 is NaN")]
    fn a_nan_is_named() {
        assert_close("x", &[1.0, NAN], &[1.0, 1.0], 1e9, Nan::Fails);
    }

    #[test]
    #[should_panic(expected = "3 of 4 cases were left out")]
    fn many_cases_left_out_fail() {
        let mut tally = Tally::default();
        tally.compared();
        (0..3).for_each(|_| tally.left_out());
        tally.assert_few_left_out(0.5);
    }
}
