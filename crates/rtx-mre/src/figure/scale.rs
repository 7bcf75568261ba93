//! Ranges and ticks.

use crate::inversion::quantile;

/// Ticks at round numbers within a range, about `count` of them.
pub(super) fn ticks(range: [f64; 2], count: usize) -> Vec<f64> {
    let span = range[1] - range[0];
    if !(span.is_finite() && span > 0.0) {
        return Vec::new();
    }
    let raw = span / count.max(1) as f64;
    let decade = 10_f64.powf(raw.log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * decade);
    let step = steps
        .into_iter()
        .find(|s| *s >= raw * (1.0 - 1e-9))
        .unwrap_or(raw);
    let slack = 1e-9 * span;
    let first = ((range[0] - slack) / step).ceil() as i64;
    let last = ((range[1] + slack) / step).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Labels of ticks: as many decimals as their step needs, a true minus sign.
pub(super) fn labels(ticks: &[f64]) -> Vec<String> {
    let step = match ticks {
        [a, b, ..] => b - a,
        [a] => a.abs(),
        [] => return Vec::new(),
    };
    let size = ticks.iter().fold(0.0_f64, |m, t| m.max(t.abs()));
    if size == 0.0 {
        return vec!["0".into(); ticks.len()];
    }
    if !(1e-3..1e5).contains(&size) {
        let exponential = |t: &f64| {
            if *t == 0.0 {
                "0".into()
            } else {
                format!("{t:.1e}")
            }
        };
        return ticks
            .iter()
            .map(exponential)
            .map(|text| text.replace('-', "\u{2212}"))
            .collect();
    }
    let decimals = (0..6)
        .find(|&d| {
            let scaled = step * 10_f64.powi(d);
            (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0) && scaled.round() != 0.0
        })
        .unwrap_or(6) as usize;
    ticks
        .iter()
        .map(|t| {
            let text = format!("{:.decimals$}", if *t == 0.0 { 0.0 } else { *t });
            text.replace('-', "\u{2212}")
        })
        .collect()
}

/// A range that leaves out the outer `tail` of the values at each end; starts at zero when no
/// value is negative.
pub(super) fn robust_range(values: impl Iterator<Item = f64>, tail: f64) -> [f64; 2] {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    let high = quantile(&mut values, 1.0 - tail);
    let low = if values.first().is_some_and(|v| *v >= 0.0) {
        0.0
    } else {
        quantile(&mut values, tail)
    };
    usable([low.min(0.0), high])
}

/// Widens a range without an extent so that it can be drawn.
pub(super) fn usable(range: [f64; 2]) -> [f64; 2] {
    let [low, high] = range;
    if low.is_finite() && high.is_finite() && high > low {
        range
    } else if low.is_finite() && low != 0.0 {
        let pad = 0.5 * low.abs();
        [low - pad, low + pad]
    } else {
        [0.0, 1.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within_the_range() {
        assert_eq!(ticks([0.0, 10.0], 4), [0.0, 2.5, 5.0, 7.5, 10.0]);
        assert_eq!(ticks([3.0, 97.0], 4), [25.0, 50.0, 75.0]);
        assert_eq!(
            labels(&ticks([-0.4, 0.4], 4)),
            ["\u{2212}0.4", "\u{2212}0.2", "0.0", "0.2", "0.4"]
        );
        assert_eq!(
            labels(&ticks([0.0, 10.0], 4)),
            ["0.0", "2.5", "5.0", "7.5", "10.0"]
        );
        assert_eq!(labels(&ticks([0.0, 12.0], 3)), ["0", "5", "10"]);
        assert_eq!(labels(&ticks([0.0, 2e-6], 2))[1], "1.0e\u{2212}6");
        assert_eq!(labels(&[0.0]), ["0"]);
        assert!(ticks([1.0, 1.0], 4).is_empty());
        assert!(ticks([0.0, f64::NAN], 4).is_empty());
    }

    #[test]
    fn ranges_ignore_tails_and_survive_constants() {
        let values = (0..=100).map(f64::from).chain([1e9, f64::NAN]);
        let range = robust_range(values, 0.02);
        assert!(range[0] == 0.0 && range[1] < 110.0, "{range:?}");
        assert_eq!(robust_range([f64::NAN].into_iter(), 0.02), [0.0, 1.0]);
        assert_eq!(usable([3.0, 3.0]), [1.5, 4.5]);
    }
}
