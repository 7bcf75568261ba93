//! Figures: grids of maps with colour bars, axes in millimetres and masked pixels in grey.
//!
//! A [`PanelGrid`] is data; [`PanelGrid::write_png`] draws it. [`maps_figure`] and
//! [`comparison_figure`] build the two grids that the command writes. Text uses an embedded font,
//! so figures look the same on a machine without fonts.

mod canvas;
mod draw;
mod maps;
mod scale;

use std::path::Path;

use ndarray::Array2;
use rtx_tensor::io::write_atomic;

pub use maps::{DisplacementUnit, comparison_figure, maps_figure};

use crate::error::{MreError, Result};

/// A colour map; all but the last run from dark to light with even perceived steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColorMap {
    /// Blue through green to yellow: moduli.
    Viridis,
    /// Black through purple to light yellow: amplitudes.
    Magma,
    /// Blue through white to red, for signed errors; white is the middle of the range.
    Diverging,
}

impl ColorMap {
    /// The colour at `t` in 0..=1.
    pub(crate) fn at(self, t: f64) -> [u8; 3] {
        let t = t.clamp(0.0, 1.0);
        let color = match self {
            Self::Viridis => colorous::VIRIDIS.eval_continuous(t),
            Self::Magma => colorous::MAGMA.eval_continuous(t),
            Self::Diverging => colorous::RED_BLUE.eval_continuous(1.0 - t),
        };
        [color.r, color.g, color.b]
    }
}

/// One map.
#[derive(Debug, Clone)]
pub struct Panel {
    /// Values `[x, y]` in the unit of the colour bar; NaN is drawn grey.
    pub data: Array2<f64>,
    /// Pixel size along x and y, m.
    pub spacing: [f64; 2],
    /// Values at the two ends of the colour bar; values beyond take the end's colour.
    pub range: [f64; 2],
    /// Unit, written above the colour bar.
    pub unit: String,
    /// The colours.
    pub color_map: ColorMap,
}

/// Panels in rows and columns.
#[derive(Debug, Clone, Default)]
pub struct PanelGrid {
    /// Heading of the figure.
    pub title: String,
    /// One per column.
    pub column_titles: Vec<String>,
    /// One per row.
    pub row_labels: Vec<String>,
    /// Panels by row; a row may be shorter than others.
    pub panels: Vec<Vec<Panel>>,
    /// Small print below, such as the orientation.
    pub footer: String,
}

impl PanelGrid {
    /// Draws the grid and writes a PNG file, whole or not at all.
    ///
    /// # Errors
    /// [`MreError::Figure`] for a grid without a panel or when drawing fails;
    /// [`MreError::Io`] when the file cannot be written.
    pub fn write_png(&self, path: &Path) -> Result<()> {
        let image = draw::draw(self)?;
        write_atomic(path, |out| {
            image.encode(out).map_err(|e| match e {
                png::EncodingError::IoError(e) => MreError::io("write", path, e),
                other => MreError::Figure(other.to_string()),
            })
        })
    }
}
