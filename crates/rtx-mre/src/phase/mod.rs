//! Wrapped phase: noticed, unwrapped, checked.
//!
//! Phase images are known up to whole turns, and a harmonic of wrapped samples is silent garbage: a wrapped sinusoid
//! without an offset even has odd harmonics only, so the second one does not show it. What shows it are jumps
//! between neighbouring pixels that all suggest one period. The period of a known scale (radians, degrees,
//! milliradians, 4096 steps, -4096 to 4094) is recognised; any other is refused by name, for no rule says whether
//! the scale's last step belongs to it.
//!
//! The differences of successive offsets, wrapped, are free of the static phase of a pixel and of its jumps. Each
//! is unwrapped in space (a file of its own here names the source); the whole periods that are then missing
//! between offsets come from the pixels that move least, whose differences need no unwrapping. Around the cycle the
//! differences must sum to zero: pixels where they do not are given up, and too many of them are refused.

mod detect;
mod unwrap;

use std::str::FromStr;

use ndarray::{Array3, Array4, Array6, Axis, s};
use num_complex::Complex64;
use serde::Serialize;
use std::f64::consts::TAU;

use crate::error::MreError;
use detect::{Looks, SCALES, Samples};
use unwrap::{Unwrapped, unwrap, wrap};

/// Share of the pixels that move least which decides about whole periods, and how many must agree.
const STILL: f64 = 0.02;
const AGREE: f64 = 0.6;
/// The same for three, four and six offsets: whole periods there can make a first harmonic of their own, (1, 0, -1, 0)
/// for instance, which no higher harmonic would show.
const AGREE_AMBIGUOUS: f64 = 0.9;
/// Fewest such pixels.
const STILL_PIXELS: usize = 9;
/// Share of pixels that may be given up, and of neighbours that may still differ by half a period.
const MOST_LOST: f64 = 0.05;
const MOST_JUMPS: f64 = 0.02;
/// Share of neighbours from which steps between offsets are called smooth; one half is noise.
const COHERENT: f64 = 0.9;
/// Rms of the third harmonic over that of the first from which a wave is doubted: a phase of two thirds of a turn that
/// was wrapped and smoothed over 1.5 pixels has 0.15.
const MOST_THIRD: f64 = 0.1;
/// Share of a turn that wrapped samples span at least: they jump from one end of it to the other.
const LEAST_SPAN: f64 = 0.9;
/// Rms of a higher harmonic over that of the first from which unwrapping is taken to have failed.
const MOST_HARMONICS: f64 = 0.5;

/// What to do about wrapped phase (`--unwrap`).
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Unwrapping {
    /// Unwrap what is recognised as wrapped; refuse what cannot be told.
    #[default]
    Auto,
    /// Take the samples as they are.
    Off,
    /// A full turn is this many units of the samples.
    Period(f64),
}

impl FromStr for Unwrapping {
    type Err = MreError;

    fn from_str(text: &str) -> Result<Self, MreError> {
        match text.trim() {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            other => match other.parse::<f64>() {
                Ok(period) if period.is_finite() && period > 0.0 => Ok(Self::Period(period)),
                _ => Err(MreError::option(
                    "--unwrap",
                    text,
                    "give auto, off, or the number that stands for a full turn, for example 4096",
                )),
            },
        }
    }
}

/// What was unwrapped.
#[derive(Debug, Clone, Serialize)]
pub struct UnwrappedPhase {
    /// A full turn in the units of the file. All samples were scaled to radians by it.
    pub period: f64,
    /// The scale by name.
    pub scale: String,
    /// Indices (frequency, direction) of what was unwrapped.
    pub blocks: Vec<(usize, usize)>,
    /// Pixels given up.
    pub lost_pixels: usize,
    /// Where they are, `[x, y, z]`.
    #[serde(skip)]
    pub lost: Array3<bool>,
}

/// Unwraps real samples `[freq, dir, offset, x, y, z]` in place where they are a wrapped phase; `None` where they
/// are not. Looks at the pixels of `mask` alone, if there is one.
///
/// # Errors
/// What was found and what to do about it, in words, where it cannot be told or not be unwrapped.
pub(crate) fn unwrap_phase(
    data: &mut Array6<Complex64>,
    mask: Option<&Array3<bool>>,
    how: Unwrapping,
) -> Result<Option<UnwrappedPhase>, String> {
    let (nf, nd, offsets, nx, ny, nz) = data.dim();
    if how == Unwrapping::Off || offsets < 3 {
        return Ok(None);
    }
    let blocks: Vec<(usize, usize)> = (0..nf).flat_map(|f| (0..nd).map(move |d| (f, d))).collect();
    let mut all = Vec::new();
    for &(f, d) in &blocks {
        let block = data.slice(s![f, d, .., .., .., ..]).mapv(|v| v.re);
        let inside = Array3::from_shape_fn((nx, ny, nz), |(x, y, z)| {
            let cycle = block.slice(s![.., x, y, z]);
            mask.is_none_or(|m| m[[x, y, z]])
                && cycle.iter().all(|v| v.is_finite())
                && cycle.iter().any(|v| *v != 0.0)
        });
        let samples = Samples::new(block.view(), &inside);
        all.push(Block {
            f,
            d,
            values: block,
            inside,
            samples,
        });
    }

    let period = match how {
        Unwrapping::Period(period) => {
            if let Some(block) = all.iter().find(|b| !b.samples.fit_into(period)) {
                let (low, high) = block.samples.ends();
                return Err(format!(
                    "the samples go from {low:.4} to {high:.4}, more than --unwrap {period}; a wrapped phase fits \
                     into one turn"
                ));
            }
            let span = |b: &Block| b.samples.ends().1 - b.samples.ends().0;
            let widest = all.iter().map(span).fold(0.0, f64::max);
            if widest < LEAST_SPAN * period {
                return Err(format!(
                    "the samples span {widest:.4}, far less than --unwrap {period}: nothing is wrapped at that turn. Give \
                     the number of units that stands for a full turn in this file, or --unwrap off"
                ));
            }
            period
        }
        _ => match period_of(&all, mask.is_some())? {
            Some(period) => period,
            None => return Ok(None),
        },
    };

    let mut lost = Array3::from_elem((nx, ny, nz), false);
    let mut done = Vec::new();
    for block in all {
        let Block {
            f,
            d,
            values: mut block,
            inside,
            samples,
        } = block;
        let wrapped = samples.fit_into(period)
            && (samples.jumps_of(period) > 0 || matches!(how, Unwrapping::Period(_)));
        if wrapped && inside.iter().any(|i| *i) {
            unwrap_block(&mut block, &inside, period, &mut lost).map_err(|problem| {
                format!("frequency {}, direction {}: {problem}", f + 1, d + 1)
            })?;
            data.slice_mut(s![f, d, .., .., .., ..])
                .assign(&block.mapv(Complex64::from));
            done.push((f, d));
        }
    }
    data.mapv_inplace(|v| v * (TAU / period));
    let name = SCALES.iter().find(|s| s.0 == period);
    Ok(Some(UnwrappedPhase {
        period,
        scale: name.map_or_else(|| format!("a turn of {period}"), |s| s.1.into()),
        blocks: done,
        lost_pixels: crate::mask::count(&lost),
        lost,
    }))
}

/// What a list of real values alone tells, for a file whose axes are not known: the scale whose range they fill.
pub fn fills_scale(values: impl Iterator<Item = f64>) -> Option<&'static str> {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    let range = high - low;
    let fills = |p: f64| range <= p * (1.0 + 1e-4) && range > 0.99 * p;
    SCALES.iter().find(|s| fills(s.0)).map(|s| s.1)
}

/// The samples `[offset, x, y, z]` of one frequency and direction.
struct Block {
    f: usize,
    d: usize,
    values: Array4<f64>,
    inside: Array3<bool>,
    samples: Samples,
}

/// The one period of everything, or why there is none.
fn period_of(all: &[Block], has_mask: bool) -> Result<Option<f64>, String> {
    let (mut found, mut doubt): (Option<f64>, Option<String>) = (None, None);
    for block in all {
        let (low, high) = block.samples.ends();
        let looks = match block.samples.looks() {
            // A static phase of each pixel hides the jumps, but not from the steps between offsets.
            Looks::Unclear(period)
                if coherence(&block.values, &block.inside, period) > COHERENT =>
            {
                Looks::Wrapped(period)
            }
            looks => looks,
        };
        match looks {
            Looks::Smooth => {}
            Looks::Wrapped(period) => match found {
                Some(other) if other != period => {
                    return Err(format!(
                        "the samples jump by {other:.5} at one frequency or direction and by {period:.5} at another; bring \
                         all of them to radians"
                    ));
                }
                _ => found = Some(period),
            },
            Looks::Unclear(period) => {
                doubt.get_or_insert(format!(
                    "the samples go from {low:.4} to {high:.4} and jump between neighbours, as a phase wrapped with a \
                     period of {period:.5} in noise does; {}, or say what they are with --unwrap (the period, or off for \
                     displacement)",
                    match has_mask {
                        true => "give a mask without the noise",
                        false => "give the tissue with --mask, as phase outside the body is noise",
                    }
                ));
            }
            Looks::UnknownPeriod(period) => {
                doubt.get_or_insert(format!(
                    "the samples go from {low:.4} to {high:.4} and jump by about {period:.4} between neighbours: a wrapped \
                     phase in a scale that is not known (known are 2 pi, 360, 4096, 8192, 2000 pi); give the number that \
                     stands for a full turn with --unwrap, or --unwrap off for displacement"
                ));
            }
        }
    }
    match (found, doubt) {
        (Some(period), _) => Ok(Some(period)),
        (None, Some(doubt)) => Err(doubt),
        (None, None) => Ok(None),
    }
}

/// The steps from each offset to the next around the cycle, less whole periods.
fn wrapped_steps(block: &Array4<f64>, period: f64) -> Array4<f64> {
    let offsets = block.len_of(Axis(0));
    let mut steps = Array4::zeros(block.dim());
    for (k, mut step) in steps.outer_iter_mut().enumerate() {
        let next = block.index_axis(Axis(0), (k + 1) % offsets);
        let difference = &next - &block.index_axis(Axis(0), k);
        step.assign(&difference.mapv(|v| wrap(v, period)));
    }
    steps
}

/// Pairs of neighbours inside, along x, y and z.
fn neighbours(inside: &Array3<bool>) -> impl Iterator<Item = [(usize, usize, usize); 2]> + '_ {
    let pixels = inside.indexed_iter().filter(|(_, i)| **i);
    pixels.flat_map(move |((x, y, z), _)| {
        [(x + 1, y, z), (x, y + 1, z), (x, y, z + 1)]
            .into_iter()
            .filter(|next| inside.get(*next).copied().unwrap_or(false))
            .map(move |next| [(x, y, z), next])
    })
}

/// Share of neighbours whose steps between offsets differ by less than a quarter of a period; one half in noise.
fn coherence(block: &Array4<f64>, inside: &Array3<bool>, period: f64) -> f64 {
    let (mut close, mut all) = (0_usize, 0_usize);
    for step in wrapped_steps(block, period).outer_iter() {
        for [a, b] in neighbours(inside) {
            all += 1;
            close += usize::from(wrap(step[b] - step[a], period).abs() < 0.25 * period);
        }
    }
    close as f64 / all.max(1) as f64
}

fn unwrap_block(
    block: &mut Array4<f64>,
    inside: &Array3<bool>,
    period: f64,
    lost: &mut Array3<bool>,
) -> Result<(), String> {
    let offsets = block.len_of(Axis(0));
    let wrapped = wrapped_steps(block, period);
    let mut steps = wrapped.clone();
    let mut part = Array3::from_elem(inside.dim(), usize::MAX);
    for mut step in steps.outer_iter_mut() {
        let Unwrapped { field, part: p } = unwrap(step.view(), inside, period);
        step.assign(&field);
        part = p;
    }
    restore_periods(&mut steps, &wrapped, &part, period)?;

    let pixels: Vec<_> = inside
        .indexed_iter()
        .filter(|(_, i)| **i)
        .map(|(at, _)| at)
        .collect();
    let mut given_up = 0;
    for &(x, y, z) in &pixels {
        let sum: f64 = steps.slice(s![.., x, y, z]).sum();
        if sum.abs() > 0.5 * period {
            lost[[x, y, z]] = true;
            given_up += 1;
        }
        for k in 1..offsets {
            block[[k, x, y, z]] = block[[k - 1, x, y, z]] + steps[[k - 1, x, y, z]];
        }
    }
    let (mut pairs, mut jumps) = (0_usize, 0_usize);
    for step in steps.outer_iter() {
        for [a, b] in neighbours(inside) {
            pairs += 1;
            jumps += usize::from((step[b] - step[a]).abs() > 0.5 * period);
        }
    }
    let failed = |what: String| {
        Err(format!(
            "after unwrapping (period {period:.5}) {what}: too few pixels or offsets for the wave, or noise in the mask. \
             Give a --mask of tissue alone, unwrap with another program, or take --unwrap off for displacement"
        ))
    };
    if given_up as f64 > MOST_LOST * pixels.len() as f64 {
        return failed(format!(
            "{given_up} of {} pixels do not come back to their phase after a cycle",
            pixels.len()
        ));
    }
    if jumps as f64 > MOST_JUMPS * pairs as f64 {
        return failed(format!(
            "{:.1} % of the neighbours still differ by more than half a period",
            100.0 * jumps as f64 / pairs as f64
        ));
    }
    let ratio = higher_harmonics(block, &pixels);
    if ratio > MOST_HARMONICS {
        return failed(format!("the higher harmonics are {ratio:.2} of the first"));
    }
    Ok(())
}

/// Adds to each part and offset the whole periods that its stillest pixels say: their steps need no unwrapping.
fn restore_periods(
    steps: &mut Array4<f64>,
    wrapped: &Array4<f64>,
    part: &Array3<usize>,
    period: f64,
) -> Result<(), String> {
    let mut parts = std::collections::BTreeMap::<usize, Vec<(f64, (usize, usize, usize))>>::new();
    for (at, p) in part.indexed_iter().filter(|(_, p)| **p != usize::MAX) {
        let cycle = wrapped.slice(s![.., at.0, at.1, at.2]);
        let largest = cycle.iter().fold(0.0_f64, |m, v| m.max(v.abs()));
        parts.entry(*p).or_default().push((largest, at));
    }
    let needed = match steps.len_of(Axis(0)) {
        3 | 4 | 6 => AGREE_AMBIGUOUS,
        _ => AGREE,
    };
    let whole: usize = parts.values().map(Vec::len).sum();
    for pixels in parts.values_mut() {
        pixels.sort_by(|a, b| a.0.total_cmp(&b.0));
        let few = (STILL * pixels.len() as f64) as usize;
        let still = &pixels[..few.max(STILL_PIXELS).min(pixels.len())];
        for k in 0..steps.len_of(Axis(0)) {
            let mut votes = std::collections::BTreeMap::<i64, usize>::new();
            for (_, (x, y, z)) in still {
                let missing = (wrapped[[k, *x, *y, *z]] - steps[[k, *x, *y, *z]]) / period;
                *votes.entry(missing.round() as i64).or_default() += 1;
            }
            let Some((&periods, &agree)) = votes.iter().max_by_key(|v| v.1) else {
                continue;
            };
            // Islands that cannot be told fail later, by their sum or by the mask.
            if (agree as f64) < needed * still.len() as f64 && pixels.len() * 10 > whole {
                return Err(format!(
                    "the pixels that move least do not agree on the whole periods between offsets {} and {} ({agree} of \
                     {}); more offsets, a smaller amplitude or a --mask of tissue alone would help, or unwrap with \
                     another program",
                    k + 1,
                    k + 2,
                    still.len()
                ));
            }
            for (_, (x, y, z)) in pixels.iter() {
                steps[[k, *x, *y, *z]] += periods as f64 * period;
            }
        }
    }
    Ok(())
}

/// Energy of a harmonic of the samples `[offset, x, y, z]` over these pixels.
fn energy(block: &Array4<f64>, pixels: &[(usize, usize, usize)], harmonic: usize) -> f64 {
    let n = block.len_of(Axis(0));
    let cis: Vec<Complex64> = (0..n)
        .map(|k| Complex64::cis(-TAU * (harmonic * k) as f64 / n as f64))
        .collect();
    let of = |&(x, y, z): &(usize, usize, usize)| {
        let sum: Complex64 = (0..n).map(|k| cis[k] * block[[k, x, y, z]]).sum();
        sum.norm_sqr()
    };
    pixels.iter().map(of).sum()
}

/// Rms of a harmonic from the second on over that of the first; zero where there is none.
fn higher_harmonics(block: &Array4<f64>, pixels: &[(usize, usize, usize)]) -> f64 {
    let last = block.len_of(Axis(0)) / 2;
    let higher: Vec<f64> = (2..=last).map(|h| energy(block, pixels, h)).collect();
    match higher.len() {
        0 => 0.0,
        count => (higher.iter().sum::<f64>() / count as f64 / energy(block, pixels, 1)).sqrt(),
    }
}

/// Where samples `[freq, dir, offset, x, y, z]` have a third harmonic that noise does not explain, because it is well above
/// the second: (frequency, direction, rms over that of the first). A wrapped phase that was smoothed or resampled no
/// longer jumps, but keeps it. Needs six offsets.
pub(crate) fn third_harmonics(
    data: &Array6<Complex64>,
    mask: Option<&Array3<bool>>,
) -> Vec<(usize, usize, f64)> {
    let (nf, nd, offsets, ..) = data.dim();
    let mut found = Vec::new();
    if offsets < 6 {
        return found;
    }
    for (f, d) in (0..nf).flat_map(|f| (0..nd).map(move |d| (f, d))) {
        let block = data.slice(s![f, d, .., .., .., ..]).mapv(|v| v.re);
        let finite = |(x, y, z): (usize, usize, usize)| {
            mask.is_none_or(|m| m[[x, y, z]])
                && block.slice(s![.., x, y, z]).iter().all(|v| v.is_finite())
        };
        let (_, nx, ny, nz) = block.dim();
        let pixels: Vec<_> = ndarray::indices((nx, ny, nz)).into_iter().collect();
        let pixels: Vec<_> = pixels.into_iter().filter(|&p| finite(p)).collect();
        let rms = |h| energy(&block, &pixels, h).sqrt();
        let (first, second, third) = (rms(1), rms(2), rms(3));
        if third > MOST_THIRD * first && third > 2.0 * second {
            found.push((f, d, third / first));
        }
    }
    found
}
