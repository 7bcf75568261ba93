//! Comparison with a reference map of the input file, at the very end and for nothing else.

use ndarray::{Array3, Array4, Axis as NdAxis};
use rustytorch::mre::axes::{Axis, AxisOrder};
use rustytorch::mre::error::Shape;
use rustytorch::mre::inversion::{RatioOptions, windowed_ratio};
use rustytorch::mre::io::ArrayFile;
use rustytorch::mre::mask::{count, erode};
use rustytorch::mre::metrics::pearson;
use rustytorch::mre::{Modulus, MreError, WaveField};
use serde::Serialize;

use super::args::InvertArgs;
use crate::failure::Failure;
use crate::table::{Table, number};

/// A reference map that has been read and found to fit.
#[derive(Debug)]
pub struct Plan {
    variable: String,
    /// |G| in kPa, `[freq, x, y, z]`; NaN where there is none.
    map: Array4<f64>,
    erode: usize,
}

/// One method against the reference.
#[derive(Debug, Serialize)]
pub struct Agreement {
    /// The method.
    pub method: String,
    /// Pearson correlation of |G| per frequency.
    pub pearson_r: Vec<Option<f64>>,
    /// Pearson correlation of the means of |G| over the frequencies.
    pub pearson_r_of_means: Option<f64>,
    /// Median of |G| per frequency, kPa.
    pub median_kpa: Vec<f64>,
}

/// The comparison.
#[derive(Debug, Serialize)]
pub struct ReferenceComparison {
    /// Name of the reference array.
    pub variable: String,
    /// Pixels compared.
    pub pixels: usize,
    /// Layers taken off the mask.
    pub eroded: usize,
    /// Median of the reference per frequency, kPa.
    pub reference_median_kpa: Vec<f64>,
    /// The result, then the windowed ratio as the baseline.
    pub methods: Vec<Agreement>,
}

impl Plan {
    /// Reads the reference named by the flags, so that a mistake shows before the inversion.
    ///
    /// # Errors
    /// A variable that is not there or does not fit the field.
    pub fn load(args: &InvertArgs, wave: &WaveField) -> Result<Option<Self>, Failure> {
        let Some(variable) = &args.reference_var else {
            return Ok(None);
        };
        let array = ArrayFile::open(&args.input)?.read(Some(variable))?;
        let names = wave.provenance.axes.split(',');
        let without_phase: Vec<&str> = names.filter(|name| *name != "phase").collect();
        let axes: AxisOrder = without_phase.join(",").parse()?;
        let shape = Shape::new(array.data.shape());
        let map = axes.canonical(variable, array.data).map_err(|_| {
            Failure::input(format!(
                "--reference-var {variable}: the array has shape {shape}, but the axes {axes} are due: those \
                 of the field in its order, without phase"
            ))
        })?;
        let map = map.index_axis_move(NdAxis(2), 0);
        let used: Vec<usize> = match axes.has(Axis::Dir) {
            true => wave.components.iter().map(|c| c.index).collect(),
            false => vec![0],
        };
        let (nf, _, nx, ny, nz) = wave.dim();
        let (rf, rc, rx, ry, rz) = map.dim();
        if (rf, rx, ry, rz) != (nf, nx, ny, nz) || used.iter().any(|&c| c >= rc) {
            return Err(Failure::input(format!(
                "--reference-var {variable}: its shape along freq, x, y, slice is [{rf}, {rx}, {ry}, \
                 {rz}], that of the field [{nf}, {nx}, {ny}, {nz}]; name an array on the same grid"
            )));
        }
        let to_kpa = if args.reference_unit == "Pa" {
            1e-3
        } else {
            1.0
        };
        // References mark pixels without a value by zero or NaN; components are averaged.
        let map = Array4::from_shape_fn((nf, nx, ny, nz), |(f, x, y, z)| {
            let values = used.iter().map(|&c| map[[f, c, x, y, z]].norm() * to_kpa);
            let values: Vec<f64> = values.filter(|v| v.is_finite() && *v > 0.0).collect();
            values.iter().sum::<f64>() / values.len() as f64
        });
        Ok(Some(Self {
            variable: variable.clone(),
            map,
            erode: args.reference_erode,
        }))
    }

    /// Compares the finished maps, and the windowed ratio as the baseline.
    ///
    /// # Errors
    /// Those of the baseline.
    pub fn compare(
        &self,
        wave: &WaveField,
        modulus: &Modulus,
    ) -> Result<ReferenceComparison, MreError> {
        let baseline = windowed_ratio(wave, RatioOptions::default())?;
        let mut mask = erode(&baseline.mask, self.erode);
        for ((x, y, z), inside) in mask.indexed_iter_mut() {
            let known = (0..wave.freq.len()).all(|f| self.map[[f, x, y, z]].is_finite());
            *inside = *inside && known && modulus.mask[[x, y, z]];
        }
        let magnitude = |m: &Modulus| m.g.mapv(|g| g.norm() / 1e3);
        let agreement = |m: &Modulus| {
            let map = magnitude(m);
            Agreement {
                method: m.method.clone(),
                pearson_r: self
                    .per_frequency(|f| correlation(&at(&map, &mask, f), &at(&self.map, &mask, f))),
                pearson_r_of_means: correlation(&means(&map, &mask), &means(&self.map, &mask)),
                median_kpa: self.per_frequency(|f| median(at(&map, &mask, f))),
            }
        };
        let mut methods = vec![agreement(modulus)];
        if modulus.method != baseline.method {
            methods.push(agreement(&baseline));
        }
        Ok(ReferenceComparison {
            variable: self.variable.clone(),
            pixels: count(&mask),
            eroded: self.erode,
            reference_median_kpa: self.per_frequency(|f| median(at(&self.map, &mask, f))),
            methods,
        })
    }

    fn per_frequency<T>(&self, value: impl Fn(usize) -> T) -> Vec<T> {
        (0..self.map.dim().0).map(value).collect()
    }
}

fn at(map: &Array4<f64>, mask: &Array3<bool>, f: usize) -> Vec<f64> {
    let map = map.index_axis(NdAxis(0), f);
    let inside = map.iter().zip(mask).filter(|&(_, &inside)| inside);
    inside.map(|(value, _)| *value).collect()
}

fn means(map: &Array4<f64>, mask: &Array3<bool>) -> Vec<f64> {
    let mut sums = vec![0.0; count(mask)];
    for f in 0..map.dim().0 {
        for (sum, value) in sums.iter_mut().zip(at(map, mask, f)) {
            *sum += value / map.dim().0 as f64;
        }
    }
    sums
}

fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    pearson(a.iter().copied().zip(b.iter().copied()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => 0.5 * (values[n / 2 - 1] + values[n / 2]),
    }
}

impl ReferenceComparison {
    /// The table for the terminal.
    pub fn text(&self, freq: &[f64]) -> String {
        let mut headings = vec!["method".to_string()];
        headings.extend(freq.iter().map(|f| format!("r {f} Hz")));
        headings.push("r of means".into());
        headings.extend(freq.iter().map(|f| format!("kPa {f} Hz")));
        let mut table = Table::new(headings);
        for m in &self.methods {
            let mut row = vec![m.method.clone()];
            row.extend(m.pearson_r.iter().map(|r| number(*r, 3)));
            row.push(number(m.pearson_r_of_means, 3));
            row.extend(m.median_kpa.iter().map(|v| number(Some(*v), 3)));
            table.row(row);
        }
        let mut row = vec![format!("reference {}", self.variable)];
        row.extend(vec![String::new(); freq.len() + 1]);
        let medians = self.reference_median_kpa.iter();
        row.extend(medians.map(|v| number(Some(*v), 3)));
        table.row(row);
        format!(
            "against the reference, |G| on {} pixels ({} layers off the mask):\n{}",
            self.pixels,
            self.eroded,
            table.render()
        )
    }
}
