//! A pixel buffer with rectangles and text.

use std::io::Write;

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};

use crate::error::{MreError, Result};

const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans-subset.ttf");
/// Height of capitals in the font over its nominal size.
const CAP_HEIGHT: f64 = 0.626;

pub(super) type Rgb = [u8; 3];
pub(super) const BLACK: Rgb = [0; 3];

/// Horizontal anchor of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// An RGB image.
pub(super) struct Canvas {
    width: u32,
    height: u32,
    pixels: Vec<u8>,
}

impl Canvas {
    pub(super) fn new(width: u32, height: u32) -> Self {
        let len = width as usize * height as usize * 3;
        Self {
            width,
            height,
            pixels: vec![255; len],
        }
    }

    /// Sets one pixel; outside of the image nothing happens.
    pub(super) fn set(&mut self, x: i32, y: i32, color: Rgb) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x < self.width && y < self.height {
            let at = 3 * (y as usize * self.width as usize + x as usize);
            self.pixels[at..at + 3].copy_from_slice(&color);
        }
    }

    /// Fills columns `x .. x + w` and rows `y .. y + h`.
    pub(super) fn fill(&mut self, [x, y, w, h]: [i32; 4], color: Rgb) {
        for row in y..y + h {
            for column in x..x + w {
                self.set(column, row, color);
            }
        }
    }

    /// Draws a frame two pixels thick around a rectangle.
    pub(super) fn frame(&mut self, [x, y, w, h]: [i32; 4], color: Rgb) {
        self.fill([x - 2, y - 2, w + 4, 2], color);
        self.fill([x - 2, y + h, w + 4, 2], color);
        self.fill([x - 2, y, 2, h], color);
        self.fill([x + w, y, 2, h], color);
    }

    /// Writes text centred vertically (on its capitals) at `y`; `size` is the height of the font.
    pub(super) fn text(
        &mut self,
        text: &str,
        (x, y): (i32, i32),
        size: f64,
        anchor: Anchor,
    ) -> Result<()> {
        let width = text_width(text, size)?;
        let start = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - width / 2,
            Anchor::End => x - width,
        };
        glyphs(text, size, |dx, dy, coverage| {
            self.ink(start + dx, y + dy, coverage)
        })
    }

    /// Writes text upwards, centred on the column `x` and the row `y`.
    pub(super) fn text_upwards(&mut self, text: &str, (x, y): (i32, i32), size: f64) -> Result<()> {
        let start = y + text_width(text, size)? / 2;
        glyphs(text, size, |dx, dy, coverage| {
            self.ink(x + dy, start - dx, coverage)
        })
    }

    /// Darkens a pixel by the share of it that black ink covers.
    fn ink(&mut self, x: i32, y: i32, coverage: f32) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x < self.width && y < self.height {
            let at = 3 * (y as usize * self.width as usize + x as usize);
            let paper = 1.0 - coverage.clamp(0.0, 1.0);
            self.pixels[at..at + 3]
                .iter_mut()
                .for_each(|v| *v = (f32::from(*v) * paper) as u8);
        }
    }

    /// Encodes the image as PNG.
    pub(super) fn encode(&self, out: impl Write) -> std::result::Result<(), png::EncodingError> {
        let mut encoder = png::Encoder::new(out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()
    }
}

/// Width of a text in pixels.
pub(super) fn text_width(text: &str, size: f64) -> Result<i32> {
    let font = font()?;
    let font = font.as_scaled(PxScale::from(size as f32));
    let width: f32 = text.chars().map(|c| font.h_advance(font.glyph_id(c))).sum();
    Ok(width.ceil() as i32)
}

/// Rasterises a line of text; `ink` receives pixels relative to its left end and the middle of
/// its capitals, with the share of each that is covered.
fn glyphs(text: &str, size: f64, mut ink: impl FnMut(i32, i32, f32)) -> Result<()> {
    let font = font()?;
    let scale = PxScale::from(size as f32);
    let scaled = font.as_scaled(scale);
    let baseline = (size * CAP_HEIGHT / 2.0).round() as f32;
    let mut x = 0.0;
    for character in text.chars() {
        let id = scaled.glyph_id(character);
        let glyph = id.with_scale_and_position(scale, point(x, baseline));
        if let Some(outline) = font.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            let (left, top) = (corner.x as i32, corner.y as i32);
            outline.draw(|dx, dy, coverage| ink(left + dx as i32, top + dy as i32, coverage));
        }
        x += scaled.h_advance(id);
    }
    Ok(())
}

fn font() -> Result<FontRef<'static>> {
    FontRef::try_from_slice(FONT)
        .map_err(|_| MreError::Figure("the embedded font cannot be read".into()))
}
