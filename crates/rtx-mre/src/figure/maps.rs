//! The figures of the command: maps of one inversion, and methods beside the truth.

use ndarray::{Array2, Array3, ArrayView3, Axis, s};
use num_complex::Complex64;

use super::scale::robust_range;
use super::{ColorMap, Panel, PanelGrid};
use crate::error::{MreError, Result};
use crate::inversion::Modulus;
use crate::metrics::{Quantity, Truth};
use crate::wave::WaveField;

/// Share of the values beyond each end of a colour bar.
const TAIL: f64 = 0.02;
/// Pixels around the mask that are shown.
const MARGIN: usize = 3;

/// The unit of a displacement; files do not say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisplacementUnit {
    /// Metres; shown in micrometres.
    Metres,
    /// Anything else.
    Arbitrary,
}

impl DisplacementUnit {
    /// Metres if the amplitudes are those of a vibration in metres (10 nm to 1 mm), else
    /// arbitrary. Only the labels of figures depend on it.
    pub fn of(wave: &WaveField) -> Self {
        let amplitudes = wave.u.iter().map(|u| u.norm()).filter(|a| *a > 0.0);
        let [_, high] = robust_range(amplitudes, TAIL);
        if (1e-8..1e-3).contains(&high) {
            Self::Metres
        } else {
            Self::Arbitrary
        }
    }
}

/// The part of a slice that holds the mask.
struct Window {
    slice: usize,
    x: std::ops::Range<usize>,
    y: std::ops::Range<usize>,
}

impl Window {
    /// The slice with most of the mask, cut to the mask's extent.
    fn of(mask: &Array3<bool>) -> Result<Self> {
        let size = |z: &usize| mask.index_axis(Axis(2), *z).iter().filter(|&&m| m).count();
        let none = || MreError::Figure("the mask is empty: there is nothing to draw".into());
        // Of equals the first is taken.
        let slice = (0..mask.dim().2).rev().max_by_key(size).ok_or_else(none)?;
        let inside = mask.index_axis(Axis(2), slice);
        let extent = |axis: usize| -> Option<std::ops::Range<usize>> {
            let lanes = inside.axis_iter(Axis(axis));
            let used: Vec<usize> = lanes
                .enumerate()
                .filter(|(_, lane)| lane.iter().any(|&m| m))
                .map(|(i, _)| i)
                .collect();
            let (first, last) = (*used.first()?, *used.last()?);
            let end = (last + 1 + MARGIN).min(inside.len_of(Axis(axis)));
            Some(first.saturating_sub(MARGIN)..end)
        };
        Ok(Self {
            slice,
            x: extent(0).ok_or_else(none)?,
            y: extent(1).ok_or_else(none)?,
        })
    }

    fn cut<T>(
        &self,
        volume: ArrayView3<'_, T>,
        mask: &Array3<bool>,
        value: impl Fn(&T) -> f64,
    ) -> Array2<f64> {
        let part = volume.slice(s![self.x.clone(), self.y.clone(), self.slice]);
        let inside = mask.slice(s![self.x.clone(), self.y.clone(), self.slice]);
        let mut out = part.map(value);
        out.zip_mut_with(&inside, |v, &inside| {
            if !inside {
                *v = f64::NAN;
            }
        });
        out
    }

    fn footer(&self, slices: usize) -> String {
        let slice = if slices > 1 {
            format!("Slice {} of {slices} (from 0). ", self.slice)
        } else {
            String::new()
        };
        format!(
            "{slice}x runs right, y down; shown from pixel x {}, y {}. Grey: outside the mask. \
             Colours end at the outer {} %.",
            self.x.start,
            self.y.start,
            TAIL * 100.0
        )
    }
}

/// |u|, G', G'' and |G| of an inversion, one row per frequency.
///
/// G' and |G| share one colour range over all frequencies, and G'' has one, so that rows can be
/// compared; |u| (root of the sum over components of |u|^2) has a range per row.
///
/// # Errors
/// [`MreError::ShapeMismatch`] when `modulus` is not on the grid of `wave`;
/// [`MreError::Figure`] when the mask is empty.
pub fn maps_figure(
    wave: &WaveField,
    modulus: &Modulus,
    unit: DisplacementUnit,
    title: &str,
) -> Result<PanelGrid> {
    let (nf, _, nx, ny, nz) = wave.dim();
    if modulus.g.dim() != (nf, nx, ny, nz) {
        return Err(MreError::shape(
            "maps of a field",
            &[nf, nx, ny, nz],
            modulus.g.shape(),
        ));
    }
    let window = Window::of(&wave.mask)?;
    let kpa = |quantity: Quantity| move |g: &Complex64| quantity.of(*g) / 1e3;
    let range = |quantity: Quantity| {
        let values = modulus.g.iter().filter(|g| g.is_finite());
        robust_range(values.map(|g| quantity.of(*g) / 1e3), TAIL)
    };
    let (magnitude, loss) = (range(Quantity::Magnitude), range(Quantity::Loss));
    let (factor, unit) = match unit {
        DisplacementUnit::Metres => (1e6, "\u{b5}m"),
        DisplacementUnit::Arbitrary => (1.0, "a.u."),
    };
    let spacing = [wave.spacing[0], wave.spacing[1]];
    let panel = |data, range, unit: &str, color_map| Panel {
        data,
        spacing,
        range,
        unit: unit.into(),
        color_map,
    };
    let rows = (0..nf).map(|f| {
        let field = wave.u.index_axis(Axis(0), f);
        let amplitude = field
            .map(|u| u.norm_sqr())
            .sum_axis(Axis(0))
            .mapv(f64::sqrt);
        let amplitude = window.cut(amplitude.view(), &wave.mask, |a| a * factor);
        let amplitude_range = robust_range(amplitude.iter().copied(), TAIL);
        let map = modulus.g.index_axis(Axis(0), f);
        let cut = |quantity| window.cut(map, &modulus.mask, kpa(quantity));
        vec![
            panel(amplitude, amplitude_range, unit, ColorMap::Magma),
            panel(cut(Quantity::Storage), magnitude, "kPa", ColorMap::Viridis),
            panel(cut(Quantity::Loss), loss, "kPa", ColorMap::Viridis),
            panel(
                cut(Quantity::Magnitude),
                magnitude,
                "kPa",
                ColorMap::Viridis,
            ),
        ]
    });
    Ok(PanelGrid {
        title: title.into(),
        column_titles: ["|u|", "G\u{2032}", "G\u{2033}", "|G|"]
            .map(String::from)
            .to_vec(),
        row_labels: wave.freq.iter().map(|f| format!("{f} Hz")).collect(),
        panels: rows.collect(),
        footer: window.footer(nz),
    })
}

/// The truth, each method, and the error of the first method, one row per chosen frequency.
///
/// All moduli share one colour range, that of the truth widened by a tenth; the error is signed.
///
/// # Errors
/// [`MreError::ShapeMismatch`] when a map is not on the grid of the truth, or a frequency index
/// is beyond it; [`MreError::Figure`] when there is no method, or nothing to draw.
pub fn comparison_figure(
    truth: &Truth,
    methods: &[(&str, &Modulus)],
    quantity: Quantity,
    frequencies: &[usize],
    title: &str,
) -> Result<PanelGrid> {
    let Some(((first_name, first), _)) = methods.split_first() else {
        return Err(MreError::Figure("a comparison needs a method".into()));
    };
    let (nf, nx, ny, nz) = truth.g.dim();
    for (_, modulus) in methods {
        if modulus.g.dim() != truth.g.dim() {
            return Err(MreError::shape(
                "comparison",
                &[nf, nx, ny, nz],
                modulus.g.shape(),
            ));
        }
    }
    if let Some(&beyond) = frequencies.iter().find(|f| **f >= nf) {
        return Err(MreError::shape(
            "frequencies of a comparison",
            &[nf],
            &[beyond + 1],
        ));
    }
    let everywhere = Array3::from_elem((nx, ny, nz), true);
    let window = Window::of(&everywhere)?;
    let value = |g: &Complex64| quantity.of(*g) / 1e3;
    let [low, high] = robust_range(truth.g.iter().map(value), 0.0);
    let range = [low, high * 1.1];
    let spacing = [first.spacing[0], first.spacing[1]];
    let panel = |data, range, color_map| Panel {
        data,
        spacing,
        range,
        unit: "kPa".into(),
        color_map,
    };
    let rows = frequencies.iter().map(|&f| {
        let map = |g: &ndarray::Array4<Complex64>, mask| {
            window.cut(g.index_axis(Axis(0), f), mask, value)
        };
        let known = map(&truth.g, &everywhere);
        let found = map(&first.g, &first.mask);
        let error = &found - &known;
        let mut row = vec![panel(known, range, ColorMap::Viridis)];
        row.extend(
            methods
                .iter()
                .map(|(_, m)| panel(map(&m.g, &m.mask), range, ColorMap::Viridis)),
        );
        let bound = high / 2.0;
        row.push(panel(error, [-bound, bound], ColorMap::Diverging));
        row
    });
    let symbol = match quantity {
        Quantity::Storage => "G\u{2032}",
        Quantity::Loss => "G\u{2033}",
        Quantity::Magnitude => "|G|",
    };
    let mut column_titles = vec![format!("{symbol}, truth")];
    column_titles.extend(methods.iter().map(|(name, _)| (*name).to_string()));
    column_titles.push(format!("{first_name} \u{2212} truth"));
    Ok(PanelGrid {
        title: title.into(),
        column_titles,
        row_labels: frequencies
            .iter()
            .map(|&f| format!("{} Hz", first.freq[f]))
            .collect(),
        panels: rows.collect(),
        footer: "x runs right, y down. Grey: the method gives no value. Values beyond a colour \
                 bar take the colour of its end."
            .into(),
    })
}
