//! From a file and what the user says about it to a [`WaveField`].

use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use ndarray::{Array3, Array5, ArrayD, Axis as NdAxis};
use num_complex::Complex64;

use super::{LoadOptions, MaskSource, Provenance, WaveField};
use crate::axes::{Axis, AxisOrder, Component, ComponentSelection, example_axes};
use crate::error::{MreError, Result, Shape};
use crate::harmonic::{Harmonics, harmonics};
use crate::io::{ArrayFile, NamedArray};
use crate::mask::{self, AutoMask};
use crate::phase::{self, UnwrappedPhase};

/// Vibration frequencies that can be meant, Hz: from below a heartbeat to ultrasound.
const FREQUENCIES: RangeInclusive<f64> = 1e-3..=1e7;

/// Voxel sizes that can be meant, m: from optical coherence tomography to a coarse slice.
const VOXEL_SIZES: RangeInclusive<f64> = 1e-6..=0.1;

/// Extents of an image that examinations have, m: from a microscope's to a whole body's.
const FIELDS_OF_VIEW: RangeInclusive<f64> = 5e-3..=1.0;

/// Largest amplitudes of a field that can be computed with, whatever their unit.
const AMPLITUDES: RangeInclusive<f64> = 1e-100..=1e100;

/// Where a number comes from.
#[derive(Clone, Copy)]
enum Origin {
    Option,
    File,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Option => "option",
            Self::File => "file",
        })
    }
}

/// See [`WaveField::load`].
pub(super) fn load(path: &Path, options: &LoadOptions) -> Result<WaveField> {
    Loader {
        path,
        file: ArrayFile::open(path)?,
        options,
    }
    .load()
}

/// One reading of a file with its options.
struct Loader<'a> {
    path: &'a Path,
    file: ArrayFile<'a>,
    options: &'a LoadOptions,
}

impl Loader<'_> {
    fn load(&self) -> Result<WaveField> {
        let variable = self.options.variable.as_deref();
        let array = self.file.read(variable)?;
        let axes = self
            .options
            .axes
            .clone()
            .ok_or_else(|| MreError::AxesMissing {
                variable: array.name.clone(),
                shape: Shape::new(array.data.shape()),
                rank: array.data.ndim(),
                example: example_axes(array.data.ndim(), array.is_complex).into(),
            })?;
        let NamedArray {
            name,
            data,
            is_complex,
            ..
        } = array;
        let shape = data.shape().to_vec();
        let data = axes
            .canonical(&name, data)
            .map_err(|e| self.explain_axes(e, &axes))?;
        if data.is_empty() {
            return Err(self.bad(&name, format!("the array is empty: {}", Shape::new(&shape))));
        }

        let (freq, freq_from) = self.frequencies(&name, &axes, data.len_of(NdAxis(0)))?;
        let (spacing, spacing_from) = self.spacing(&name, data.len_of(NdAxis(5)))?;
        let extents = [3, 4, 5].map(|axis| data.len_of(NdAxis(axis)));
        let components = self.components(&axes, data.len_of(NdAxis(1)))?;
        let has_phase = axes.has(Axis::Phase);
        let (positions, parts) = components;
        let mut data = data.select(NdAxis(1), &positions);
        let grid = (
            data.len_of(NdAxis(3)),
            data.len_of(NdAxis(4)),
            data.len_of(NdAxis(5)),
        );
        let given = self.given_mask(&axes, grid)?;
        let mut warnings: Vec<String> = doubtful_extent(&extents, &spacing).into_iter().collect();
        warnings.extend(self.contradictions(&name, &freq, &spacing));
        let mut unwrapped = None;
        let Harmonics {
            first: mut u,
            mut second,
        } = if has_phase {
            if is_complex && data.iter().any(|v| v.im != 0.0) {
                return Err(self.bad(
                    &name,
                    "the array is complex and has a phase axis; displacement over the phase \
                     offsets is real. Take the angle of a complex signal first (it is unwrapped here); leave \
                     `phase` out of --axes if the array is the harmonic",
                ));
            }
            unwrapped = phase::unwrap_phase(
                &mut data,
                given.as_ref().map(|(mask, _)| mask),
                self.options.unwrapping,
            )
            .map_err(|problem| MreError::WrappedPhase {
                path: self.path.to_owned(),
                variable: name.clone(),
                problem,
            })?;
            warnings.extend(unwrapped.as_ref().map(|u| say_unwrapped(u, &freq, &parts)));
            let third = phase::third_harmonics(&data, given.as_ref().map(|(mask, _)| mask));
            warnings.extend(third.iter().map(|&(f, _, share)| {
                format!(
                    "at {} Hz the third harmonic is {:.0} % of the first, well above the second: no noise and no single \
                     vibration, but what a wrapped phase leaves that was smoothed or resampled before it was unwrapped; \
                     the maps mean nothing then. Unwrap first",
                    short(freq[f]),
                    100.0 * share
                )
            }));
            harmonics(data.view(), &name, self.options.time_sign)?
        } else {
            if !is_complex {
                return Err(self.bad(
                    &name,
                    format!(
                        "the array is real and --axes {axes} names no phase axis; a wave field is \
                         either real with a `phase` axis or a complex harmonic"
                    ),
                ));
            }
            let sign = self.options.time_sign;
            let first = data.index_axis(NdAxis(2), 0).mapv(|v| sign.to_plus(v));
            Harmonics {
                first,
                second: None,
            }
        };
        for harmonic in [Some(&mut u), second.as_mut()].into_iter().flatten() {
            for (c, part) in parts.iter().enumerate() {
                harmonic
                    .index_axis_mut(NdAxis(1), c)
                    .mapv_inplace(|v| v * part.sign);
            }
        }

        self.refuse_zero_components(&name, &u, &freq, &parts)?;
        self.refuse_extreme_amplitudes(&name, &u)?;
        let (mut mask, mask_from) = match given {
            Some(given) => given,
            None => self.automatic_mask(&u, &mut warnings),
        };
        if let Some(unwrapped) = &unwrapped {
            mask.zip_mut_with(&unwrapped.lost, |inside, lost| *inside &= !lost);
        }
        let whole = mask::count(&mask);
        let mut mask = mask::erode(&mask, self.options.erode);
        if let (Some(second), MaskSource::Auto(_)) = (&second, &self.options.mask) {
            let unreliable = mask::drop_unreliable(&mut mask, &u, second);
            if unreliable > 0 {
                warnings.push(format!(
                    "{unreliable} pixels with an outlying second harmonic were taken out of the mask"
                ));
            }
        }
        let mask_pixels = mask::count(&mask);
        if mask_pixels == 0 {
            return Err(self.bad(&name, self.empty_mask(&mask_from, whole)));
        }
        self.refuse_nan(&name, &u, &mask)?;
        u.mapv_inplace(|v| if v.is_finite() { v } else { Complex64::ZERO });
        let noise = (0..freq.len()).map(|f| noise_over_signal(&u, second.as_ref(), &mask, f));

        Ok(WaveField {
            noise: noise.collect(),
            provenance: Provenance {
                file: self.path.to_owned(),
                variable: name,
                shape,
                axes: axes.to_string(),
                time_sign: self.options.time_sign.symbol(),
                phase_offsets: has_phase.then(|| data.len_of(NdAxis(2))),
                components: parts.iter().map(Component::label).collect(),
                spacing_from,
                freq_from,
                mask_from,
                mask_pixels,
                unwrapped,
                warnings,
            },
            u,
            freq,
            components: parts,
            spacing,
            mask,
        })
    }

    /// Says of too many axes in a file of MATLAB what became of the last ones.
    fn explain_axes(&self, error: MreError, axes: &AxisOrder) -> MreError {
        let MreError::AxesCount {
            named,
            rank,
            variable,
            shape,
            ..
        } = &error
        else {
            return error;
        };
        let names = axes.to_string();
        let names: Vec<&str> = names.split(',').collect();
        let (Some(kept), true) = (names.get(..*rank), named > rank && self.file.is_matlab()) else {
            return error;
        };
        let dropped = names[*rank..].join(",");
        if dropped.split(',').any(|name| name == "x" || name == "y") {
            return error;
        }
        MreError::option(
            "--axes",
            axes.to_string(),
            format!(
                "{named} axes are named, but `{variable}` has {rank}: its shape is {shape}. MATLAB drops trailing axes of \
                 length 1 when it saves; if {dropped} had length 1, give --axes {}",
                kept.join(",")
            ),
        )
    }

    fn bad(&self, variable: &str, problem: impl Into<String>) -> MreError {
        MreError::BadData {
            path: self.path.to_owned(),
            variable: variable.into(),
            problem: problem.into(),
        }
    }

    /// Why no pixel of a mask of `whole` pixels is left, and what to do.
    fn empty_mask(&self, from: &str, whole: usize) -> String {
        let eroded = self.options.erode;
        match (whole, &self.options.mask) {
            (0, MaskSource::Array { .. }) => {
                format!("the mask ({from}) has no pixel that is neither zero nor NaN")
            }
            (0, _) => format!(
                "the mask ({from}) is empty: no pixel has a finite amplitude above zero; look at the array, \
                 or give a mask with --mask"
            ),
            _ => format!(
                "nothing is left of the {whole} pixels of the mask ({from}) after {eroded} layers were \
                 eroded; erode less (--erode), or give a larger mask with --mask"
            ),
        }
    }

    /// The real values of an array that a file carries beside the wave field, which `option` replaces; the one in the
    /// structure of the field goes before one of the whole file.
    fn companion(&self, variable: &str, name: &str, option: &str) -> Result<Option<Vec<f64>>> {
        if !self.file.holds_names() {
            return Ok(None);
        }
        let variables = self.file.variables()?;
        let beside = variable
            .rsplit_once('.')
            .map(|(record, _)| format!("{record}.{name}"));
        let of = |name: &str| variables.iter().find(|v| v.name == name);
        let Some(found) = beside.as_deref().and_then(of).or_else(|| of(name)) else {
            return Ok(None);
        };
        let name = found.name.as_str();
        let refuse = |problem: String| Err(self.bad(name, format!("{problem}; give {option}")));
        if !found.numeric {
            return refuse(format!("the array is of type {}, no numbers", found.dtype));
        }
        let values = self.file.read(Some(name))?.data;
        if values.iter().any(|v| v.im != 0.0) {
            return refuse("the array is complex".into());
        }
        Ok(Some(values.iter().map(|v| v.re).collect()))
    }

    /// What an option says otherwise than the file. The option counts.
    fn contradictions(&self, variable: &str, freq: &[f64], spacing: &[f64; 3]) -> Vec<String> {
        // What an option replaces need not be readable.
        let held = |name, option| self.companion(variable, name, option).ok().flatten();
        let differs =
            |a: f64, b: f64| a.is_finite() && b.is_finite() && (a - b).abs() > 1e-3 * b.abs();
        let mut said = Vec::new();
        if self.options.freq.is_some()
            && let Some(file) = held("freq", "--freq")
            && (file.len() != freq.len() || file.iter().zip(freq).any(|(a, b)| differs(*b, *a)))
        {
            let file: Vec<_> = file.iter().map(|f| short(*f)).collect();
            said.push(format!(
                "the file's own `freq` is {} Hz; --freq is used instead. The modulus scales with its square",
                file.join(",")
            ));
        }
        if self.options.spacing.is_some()
            && let Some(file) = held("spacing", "--spacing-mm")
            && spacing.iter().enumerate().any(|(k, h)| {
                let own = file.get(k).or(file.first().filter(|_| file.len() == 1));
                own.is_some_and(|own| differs(*h, *own))
            })
        {
            let file: Vec<_> = file
                .iter()
                .map(|h| short((h * 1e9).round() / 1e6))
                .collect();
            said.push(format!(
                "the file's own `spacing` is {} mm; --spacing-mm is used instead. The modulus scales with its square",
                file.join(",")
            ));
        }
        said
    }

    fn frequencies(
        &self,
        variable: &str,
        axes: &AxisOrder,
        extent: usize,
    ) -> Result<(Vec<f64>, String)> {
        let (freq, from) = match &self.options.freq {
            Some(freq) => (freq.clone(), Origin::Option),
            None => match self.companion(variable, "freq", "--freq")? {
                Some(freq) => (freq, Origin::File),
                None => {
                    return Err(MreError::Missing {
                        what: "the vibration frequency",
                        path: self.path.to_owned(),
                        why: format!(
                            "G scales with its square, and {}; `{variable}` holds {extent} ({})",
                            match self.file.holds_names() {
                                true => "the file has no array `freq`",
                                false => "an .npy file carries no array beside the field",
                            },
                            if axes.has(Axis::Freq) {
                                "its freq axis"
                            } else {
                                "no freq axis"
                            }
                        ),
                        option: "--freq, in Hz, one per frequency, for example --freq 30,40,50",
                    });
                }
            },
        };
        let list = || {
            let list: Vec<_> = freq.iter().map(|f| short(*f)).collect();
            list.join(",")
        };
        let refuse = |problem: String| match from {
            Origin::Option => MreError::option("--freq", list(), problem),
            Origin::File => self.bad(
                "freq",
                format!("{} Hz: {problem}; --freq replaces them", list()),
            ),
        };
        if freq.len() != extent {
            return Err(refuse(format!(
                "{} frequencies for `{variable}`, which holds {extent} along its freq axis",
                freq.len()
            )));
        }
        if !freq.iter().all(|f| FREQUENCIES.contains(f)) {
            return Err(refuse(format!(
                "frequencies must lie between {:e} and {:e} Hz",
                FREQUENCIES.start(),
                FREQUENCIES.end()
            )));
        }
        Ok((freq, from.to_string()))
    }

    fn spacing(&self, variable: &str, slices: usize) -> Result<([f64; 3], String)> {
        let (spacing, from) = match self.options.spacing {
            Some(spacing) => (spacing, Origin::Option),
            None => match self
                .companion(variable, "spacing", "--spacing-mm")?
                .as_deref()
            {
                Some(&[all]) => ([all; 3], Origin::File),
                Some(&[x, y]) => ([x, y, f64::NAN], Origin::File),
                Some(&[x, y, z]) => ([x, y, z], Origin::File),
                Some(other) => {
                    return Err(self.bad(
                        "spacing",
                        format!(
                            "{} numbers; one, or one per spatial axis, is due",
                            other.len()
                        ),
                    ));
                }
                None => {
                    return Err(MreError::Missing {
                        what: "the voxel size",
                        path: self.path.to_owned(),
                        why: "the file does not carry it, and the modulus scales with its square \
                              (a voxel size 10 % too large makes G 21 % too large), so it is not \
                              guessed; it stands in the protocol or the DICOM header (Pixel \
                              Spacing)"
                            .into(),
                        option: "--spacing-mm, in millimetres, for example --spacing-mm 1.5",
                    });
                }
            },
        };
        let mut spacing = spacing;
        if spacing[2].is_nan() && slices > 1 {
            let problem = format!("two numbers, but the data have {slices} slices: three are due");
            let list = format!("{},{}", short(spacing[0] * 1e3), short(spacing[1] * 1e3));
            return Err(match from {
                Origin::Option => MreError::option("--spacing-mm", list, problem),
                Origin::File => self.bad("spacing", format!("{problem}; give --spacing-mm")),
            });
        }
        if spacing[2].is_nan() {
            // Nothing depends on the thickness of a single slice.
            spacing[2] = spacing[0];
        }
        let used = if slices > 1 { 3 } else { 2 };
        if !spacing[..used].iter().all(|h| VOXEL_SIZES.contains(h)) {
            let list: Vec<_> = spacing[..used].iter().map(|h| short(h * 1e3)).collect();
            let (list, problem) = (
                list.join(","),
                format!(
                    "the voxel size must lie between {:e} and {} mm",
                    VOXEL_SIZES.start() * 1e3,
                    VOXEL_SIZES.end() * 1e3
                ),
            );
            return Err(match from {
                Origin::Option => MreError::option("--spacing-mm", list, problem),
                Origin::File => self.bad(
                    "spacing",
                    format!(
                        "{list} mm: {problem} (the array is in metres); --spacing-mm replaces it"
                    ),
                ),
            });
        }
        Ok((spacing, from.to_string()))
    }

    fn components(&self, axes: &AxisOrder, extent: usize) -> Result<(Vec<usize>, Vec<Component>)> {
        let selection = match &self.options.components {
            Some(selection) => selection.clone(),
            None => ComponentSelection::all(extent),
        };
        let positions = selection.positions(extent, axes.has(Axis::Dir))?;
        Ok((positions, selection.parts().to_vec()))
    }

    fn refuse_zero_components(
        &self,
        variable: &str,
        u: &Array5<Complex64>,
        freq: &[f64],
        parts: &[Component],
    ) -> Result<()> {
        let is_zero = |f: usize, c: usize| {
            let field = u.index_axis(NdAxis(0), f);
            field
                .index_axis(NdAxis(0), c)
                .iter()
                .all(|v| *v == Complex64::ZERO)
        };
        for (c, part) in parts.iter().enumerate() {
            let zero: Vec<usize> = (0..freq.len()).filter(|&f| is_zero(f, c)).collect();
            if zero.is_empty() {
                continue;
            }
            let at = if zero.len() == freq.len() {
                "at every frequency".to_string()
            } else {
                let list: Vec<_> = zero.iter().map(|&f| freq[f].to_string()).collect();
                format!("at {} Hz", list.join(", "))
            };
            let alive: Vec<_> = (0..parts.len())
                .filter(|&c| !(0..freq.len()).any(|f| is_zero(f, c)))
                .map(|c| parts[c].label())
                .collect();
            let advice = if alive.is_empty() {
                "no component holds a wave at every frequency".into()
            } else {
                format!("leave it out with --components {}", alive.join(","))
            };
            return Err(self.bad(
                variable,
                format!(
                    "the first harmonic of component {} is zero {at}; {advice}",
                    part.label()
                ),
            ));
        }
        Ok(())
    }

    /// Squares of amplitudes must be numbers of double precision, far from its ends.
    fn refuse_extreme_amplitudes(&self, variable: &str, u: &Array5<Complex64>) -> Result<()> {
        let finite = u.iter().map(|v| v.norm()).filter(|a| a.is_finite());
        let largest = finite.fold(0.0, f64::max);
        if largest == 0.0 || AMPLITUDES.contains(&largest) {
            return Ok(());
        }
        Err(self.bad(
            variable,
            format!(
                "the largest amplitude is {largest:e}, but it must lie between {:e} and {:e}; scale the array \
                 (its unit does not matter)",
                AMPLITUDES.start(),
                AMPLITUDES.end()
            ),
        ))
    }

    /// The pixels whose amplitude says tissue. Pixels without a finite value are left out, after the holes were filled.
    fn automatic_mask(
        &self,
        u: &Array5<Complex64>,
        warnings: &mut Vec<String>,
    ) -> (Array3<bool>, String) {
        let rule = match &self.options.mask {
            MaskSource::Auto(rule) => *rule,
            _ => AutoMask::default(),
        };
        let amplitude = u
            .mapv(|v| v.norm_sqr())
            .sum_axis(NdAxis(0))
            .sum_axis(NdAxis(0))
            .mapv(f64::sqrt);
        let mut mask = rule.apply(amplitude.view());
        let before = mask::count(&mask);
        mask.zip_mut_with(&amplitude, |inside, a| *inside &= a.is_finite());
        let holes = before - mask::count(&mask);
        if holes > 0 {
            warnings.push(format!(
                "{holes} pixels that are NaN or infinite were left out of the automatic mask"
            ));
        }
        (mask, "automatic, from the amplitude".into())
    }

    /// A mask that does not depend on the field; `None` for the automatic one.
    fn given_mask(
        &self,
        axes: &AxisOrder,
        (nx, ny, nz): (usize, usize, usize),
    ) -> Result<Option<(Array3<bool>, String)>> {
        match &self.options.mask {
            MaskSource::All => Ok(Some((
                Array3::from_elem((nx, ny, nz), true),
                "all pixels".into(),
            ))),
            MaskSource::Auto(_) => Ok(None),
            MaskSource::Array { file, variable } => {
                let opened;
                let (path, source) = match file {
                    Some(path) => {
                        opened = ArrayFile::open(path)?;
                        (path.as_path(), &opened)
                    }
                    None => (self.path, &self.file),
                };
                let array = source
                    .read(variable.as_deref())
                    .map_err(|e| mask_error(e, path))?;
                let bad = |problem: String| MreError::BadData {
                    path: path.to_owned(),
                    variable: array.name.clone(),
                    problem,
                };
                let found = Shape::new(array.data.shape());
                let Ok(mask) = place_mask(axes, array.data, &array.name) else {
                    return Err(bad(format!(
                        "the mask has shape {found}, but a mask has the spatial axes of the data alone, \
                         {}, in the order of --axes",
                        axes.spatial()
                    )));
                };
                if mask.dim() != (nx, ny, nz) {
                    return Err(bad(format!(
                        "the mask is {} along x, y, slice, but the data are {}",
                        Shape::new(mask.shape()),
                        Shape::new(&[nx, ny, nz])
                    )));
                }
                Ok(Some((
                    mask,
                    format!("array `{}` of `{}`", array.name, path.display()),
                )))
            }
        }
    }

    /// NaN within the mask would poison a whole neighbourhood of every map.
    fn refuse_nan(&self, variable: &str, u: &Array5<Complex64>, mask: &Array3<bool>) -> Result<()> {
        let mut found = 0;
        let mut first = None;
        for ((x, y, z), _) in mask.indexed_iter().filter(|&(_, &inside)| inside) {
            let (nf, nc, ..) = u.dim();
            let finite = (0..nf).all(|f| (0..nc).all(|c| u[[f, c, x, y, z]].is_finite()));
            if !finite {
                found += 1;
                first.get_or_insert((x, y, z));
            }
        }
        match first {
            None => Ok(()),
            Some((x, y, z)) => Err(self.bad(
                variable,
                format!(
                    "{found} of the {} pixels of the mask are NaN or infinite, the first at x {x}, \
                     y {y}, slice {z} (from 0); exclude them with a mask array, or repair the data",
                    mask::count(mask)
                ),
            )),
        }
    }
}

/// A field of view that no examination has, and its likely cause.
fn doubtful_extent(pixels: &[usize; 3], spacing: &[f64; 3]) -> Option<String> {
    let (n, h) = (pixels[0].max(pixels[1]), spacing[0].max(spacing[1]));
    let metres = (pixels[0] as f64 * spacing[0]).max(pixels[1] as f64 * spacing[1]);
    let cause = if metres > *FIELDS_OF_VIEW.end() {
        "was the voxel size given in micrometres, or the field of view in its place? A `spacing` in a file counts in metres"
    } else if metres < *FIELDS_OF_VIEW.start() && n > 1 {
        "was the voxel size given in metres or centimetres where --spacing-mm takes millimetres?"
    } else {
        return None;
    };
    Some(format!(
        "the image is {} mm wide ({n} pixels, {} mm each): {cause} The modulus scales with its square",
        short((metres * 1e6).round() / 1e3),
        short((h * 1e9).round() / 1e6),
    ))
}

/// What was unwrapped, for the user.
fn say_unwrapped(unwrapped: &UnwrappedPhase, freq: &[f64], parts: &[Component]) -> String {
    let blocks = unwrapped.blocks.iter().map(|&(f, c)| match parts.len() {
        1 => format!("{} Hz", short(freq[f])),
        _ => format!("{} Hz {}", short(freq[f]), parts[c].label()),
    });
    let lost = match unwrapped.lost_pixels {
        0 => String::new(),
        n => format!(", {n} pixels given up"),
    };
    format!(
        "the samples are a wrapped phase ({}, a turn is {:.6}); unwrapped at {}{lost}; --unwrap off takes them as they are",
        unwrapped.scale,
        unwrapped.period,
        blocks.collect::<Vec<_>>().join(", ")
    )
}

/// A number without the hundreds of zeros of a very small or large one.
fn short(number: f64) -> String {
    let text = format!("{number:?}");
    text.strip_suffix(".0").unwrap_or(&text).into()
}

/// Says of an array that was looked for as the mask how it is named.
fn mask_error(error: MreError, path: &Path) -> MreError {
    match error {
        MreError::VariableNotNamed { candidates, .. } => MreError::option(
            "--mask",
            path.display().to_string(),
            format!(
                "the file holds several arrays; name one as --mask {}:NAME: {candidates}",
                path.display()
            ),
        ),
        MreError::NoSuchVariable {
            asked, candidates, ..
        } => MreError::option(
            "--mask",
            asked,
            format!(
                "`{}` has no such array; it holds {candidates}. Give auto, all, the name of an array of \
                 the input, or a file (FILE or FILE:NAME)",
                path.display()
            ),
        ),
        other => other,
    }
}

/// Brings a mask array into `[x, y, z]`; a 2-D mask serves data of one slice.
fn place_mask(axes: &AxisOrder, data: ArrayD<Complex64>, name: &str) -> Result<Array3<bool>> {
    let spatial = axes.spatial();
    let data = if data.ndim() == 2 && axes.has(Axis::Z) {
        let z_at = spatial
            .to_string()
            .split(',')
            .position(|a| a == "slice")
            .unwrap_or(2);
        data.insert_axis(NdAxis(z_at))
    } else {
        data
    };
    let canonical = spatial.canonical(name, data)?;
    let volume = canonical.index_axis(NdAxis(0), 0);
    let volume = volume.index_axis(NdAxis(0), 0);
    let volume = volume.index_axis(NdAxis(0), 0);
    Ok(volume.mapv(|v| v.is_finite() && v != Complex64::ZERO))
}

fn noise_over_signal(
    first: &Array5<Complex64>,
    second: Option<&Array5<Complex64>>,
    mask: &Array3<bool>,
    f: usize,
) -> Option<f64> {
    let energy = |field: &Array5<Complex64>| -> f64 {
        let (_, nc, ..) = field.dim();
        let inside = mask.indexed_iter().filter(|&(_, &inside)| inside);
        inside
            .map(|((x, y, z), _)| {
                (0..nc)
                    .map(|c| field[[f, c, x, y, z]].norm_sqr())
                    .sum::<f64>()
            })
            .sum()
    };
    let ratio = (energy(second?) / energy(first)).sqrt();
    ratio.is_finite().then_some(ratio)
}
