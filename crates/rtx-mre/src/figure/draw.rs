//! Lays out a grid of panels and draws it.

use super::canvas::{Anchor, BLACK, Canvas, Rgb, text_width};
use super::scale::{labels, ticks, usable};
use super::{Panel, PanelGrid};
use crate::error::{MreError, Result};

/// Longer side of a map, pixels.
const MAP_SIDE: f64 = 360.0;
const TITLE_SIZE: f64 = 34.0;
const HEAD_SIZE: f64 = 30.0;
const TEXT_SIZE: f64 = 24.0;
const TICK: i32 = 8;
const GAP: i32 = 14;
const BAR_WIDTH: i32 = 22;
const COLUMN_GAP: i32 = 34;
const ROW_GAP: i32 = 56;
/// Least height of a row: room for a colour bar beside a flat map.
const ROW_MIN: i32 = 160;
const MARGIN: i32 = 24;
const MASKED: Rgb = [200; 3];
/// Largest image that is drawn, in pixels; a grid beyond it is a mistake.
const MAX_PIXELS: i64 = 100_000_000;

/// Positions shared by all panels.
struct Layout {
    /// Left edge of each column's map, and the top edge of each row's.
    columns: Vec<i32>,
    rows: Vec<i32>,
    map: (i32, i32),
    width: i32,
    height: i32,
    row_label_x: i32,
    /// Between a map and its colour bar.
    bar_gap: i32,
}

pub(super) fn draw(grid: &PanelGrid) -> Result<Canvas> {
    let layout = Layout::of(grid)?;
    let mut canvas = Canvas::new(layout.width as u32, layout.height as u32);
    let title_y = MARGIN + TITLE_SIZE as i32 / 2;
    canvas.text(&grid.title, (MARGIN, title_y), TITLE_SIZE, Anchor::Start)?;
    let head_y = layout.rows[0] - GAP - HEAD_SIZE as i32 / 2;
    for (title, &left) in grid.column_titles.iter().zip(&layout.columns) {
        canvas.text(
            title,
            (left + layout.map.0 / 2, head_y),
            HEAD_SIZE,
            Anchor::Middle,
        )?;
    }
    for (label, &top) in grid.row_labels.iter().zip(&layout.rows) {
        canvas.text_upwards(
            label,
            (layout.row_label_x, top + layout.map.1 / 2),
            HEAD_SIZE,
        )?;
    }
    for (r, row) in grid.panels.iter().enumerate() {
        for (c, panel) in row.iter().enumerate() {
            let at = (layout.columns[c], layout.rows[r]);
            let size = map_size(panel);
            draw_map(&mut canvas, panel, at, size);
            let is_last_row = grid.panels.get(r + 1).is_none_or(|next| next.len() <= c);
            draw_axes(&mut canvas, panel, at, size, c == 0, is_last_row)?;
            let bar_height = size.1.max(ROW_MIN);
            draw_bar(
                &mut canvas,
                panel,
                (at.0 + layout.map.0 + layout.bar_gap, at.1),
                bar_height,
            )?;
        }
    }
    let footer_y = layout.height - MARGIN - TEXT_SIZE as i32 / 2;
    canvas.text(&grid.footer, (MARGIN, footer_y), TEXT_SIZE, Anchor::Start)?;
    Ok(canvas)
}

impl Layout {
    fn of(grid: &PanelGrid) -> Result<Self> {
        let panels = || grid.panels.iter().flatten();
        if panels().next().is_none() || panels().any(|p| p.data.is_empty()) {
            return Err(MreError::Figure(
                "a figure needs panels, and a panel needs pixels".into(),
            ));
        }
        let map = panels()
            .map(map_size)
            .fold((0, ROW_MIN), |m, s| (m.0.max(s.0), m.1.max(s.1)));
        // A bar longer than its map stands beside the last number of the x axis.
        let bar_gap = if panels().any(|p| map_size(p).1 < ROW_MIN) {
            3 * GAP
        } else {
            GAP
        };
        let column_count = grid.panels.iter().map(Vec::len).max().unwrap_or(0);
        let line = TEXT_SIZE as i32;

        let mut y_label_width = 0;
        for panel in grid.panels.iter().filter_map(|row| row.first()) {
            y_label_width = y_label_width.max(widest(&ticks(axis_range(panel, 1), 4))?);
        }
        let row_label = if grid.row_labels.is_empty() {
            0
        } else {
            HEAD_SIZE as i32 + GAP
        };
        let mut columns = Vec::new();
        let mut x = MARGIN + row_label + line + GAP + y_label_width + TICK + 6;
        for c in 0..column_count {
            columns.push(x);
            let mut bar = 0;
            for panel in grid.panels.iter().filter_map(|row| row.get(c)) {
                let text = widest(&bar_ticks(panel))?;
                let unit = text_width(&panel.unit, TEXT_SIZE)? - BAR_WIDTH;
                bar = bar.max(text + TICK + 6).max(unit);
            }
            x += map.0 + bar_gap + BAR_WIDTH + bar + COLUMN_GAP;
        }
        let grid_right = x - COLUMN_GAP + MARGIN;

        let head = if grid.column_titles.is_empty() {
            0
        } else {
            HEAD_SIZE as i32
        };
        let mut y = MARGIN + TITLE_SIZE as i32 + GAP + head + line + GAP;
        let mut rows = Vec::new();
        for r in 0..grid.panels.len() {
            rows.push(y);
            // A column that ends above carries its own x axis there.
            let next = grid.panels.get(r + 1).map_or(0, Vec::len);
            let has_axis = grid.panels[r].len() > next;
            let axis = if has_axis {
                TICK + 2 * (line + 8)
            } else {
                TICK
            };
            y += map.1 + axis + ROW_GAP;
        }
        let text_right = MARGIN
            + text_width(&grid.title, TITLE_SIZE)?.max(text_width(&grid.footer, TEXT_SIZE)?)
            + MARGIN;
        let (width, height) = (grid_right.max(text_right), y + line + MARGIN);
        if i64::from(width) * i64::from(height) > MAX_PIXELS {
            return Err(MreError::Figure(format!(
                "{width} x {height} pixels are too many"
            )));
        }
        let row_label_x = MARGIN + HEAD_SIZE as i32 / 2;
        Ok(Self {
            columns,
            rows,
            map,
            width,
            height,
            row_label_x,
            bar_gap,
        })
    }
}

fn axis_range(panel: &Panel, axis: usize) -> [f64; 2] {
    [
        0.0,
        panel.data.len_of(ndarray::Axis(axis)) as f64 * panel.spacing[axis] * 1e3,
    ]
}

/// Width and height of a map in pixels, true to scale.
fn map_size(panel: &Panel) -> (i32, i32) {
    let (w, h) = (axis_range(panel, 0)[1], axis_range(panel, 1)[1]);
    let longer = w.max(h);
    let side =
        |length: f64| ((MAP_SIDE * length / longer).round() as i32).clamp(8, MAP_SIDE as i32);
    (side(w), side(h))
}

/// How many ticks with their numbers fit along an axis of this many pixels.
fn tick_count(pixels: i32) -> usize {
    (pixels / 55).clamp(1, 4) as usize
}

fn bar_ticks(panel: &Panel) -> Vec<f64> {
    ticks(usable(panel.range), 4)
}

fn widest(values: &[f64]) -> Result<i32> {
    let widths = labels(values)
        .iter()
        .map(|text| text_width(text, TEXT_SIZE))
        .collect::<Result<Vec<_>>>()?;
    Ok(widths.into_iter().max().unwrap_or(0))
}

fn draw_map(canvas: &mut Canvas, panel: &Panel, (left, top): (i32, i32), (w, h): (i32, i32)) {
    let (nx, ny) = panel.data.dim();
    let [low, high] = usable(panel.range);
    for py in 0..h {
        for px in 0..w {
            let x = (px as usize * nx / w as usize).min(nx - 1);
            let y = (py as usize * ny / h as usize).min(ny - 1);
            let value = panel.data[[x, y]];
            let color = if value.is_finite() {
                panel.color_map.at((value - low) / (high - low))
            } else {
                MASKED
            };
            canvas.set(left + px, top + py, color);
        }
    }
    canvas.frame([left, top, w, h], BLACK);
}

/// Ticks on the left and below; numbers and names where asked for.
fn draw_axes(
    canvas: &mut Canvas,
    panel: &Panel,
    (left, top): (i32, i32),
    (w, h): (i32, i32),
    name_y: bool,
    name_x: bool,
) -> Result<()> {
    let half_line = TEXT_SIZE as i32 / 2;
    let (x_range, y_range) = (axis_range(panel, 0), axis_range(panel, 1));
    let x_ticks = ticks(x_range, tick_count(w));
    for (tick, label) in x_ticks.iter().zip(labels(&x_ticks)) {
        let x = left + (f64::from(w) * tick / x_range[1]).round() as i32;
        canvas.fill([x - 1, top + h + 2, 2, TICK], BLACK);
        if name_x {
            canvas.text(
                &label,
                (x, top + h + 2 + TICK + 6 + half_line),
                TEXT_SIZE,
                Anchor::Middle,
            )?;
        }
    }
    let y_ticks = ticks(y_range, tick_count(h));
    let mut label_width = 0;
    for (tick, label) in y_ticks.iter().zip(labels(&y_ticks)) {
        let y = top + (f64::from(h) * tick / y_range[1]).round() as i32;
        canvas.fill([left - 2 - TICK, y - 1, TICK, 2], BLACK);
        if name_y {
            canvas.text(&label, (left - TICK - 8, y), TEXT_SIZE, Anchor::End)?;
            label_width = label_width.max(text_width(&label, TEXT_SIZE)?);
        }
    }
    if name_x {
        let y = top + h + 2 + TICK + 12 + 3 * half_line;
        canvas.text("x (mm)", (left + w / 2, y), TEXT_SIZE, Anchor::Middle)?;
    }
    if name_y {
        let x = left - TICK - 8 - label_width - GAP - half_line;
        canvas.text_upwards("y (mm)", (x, top + h.max(ROW_MIN) / 2), TEXT_SIZE)?;
    }
    Ok(())
}

fn draw_bar(canvas: &mut Canvas, panel: &Panel, (left, top): (i32, i32), h: i32) -> Result<()> {
    let [low, high] = usable(panel.range);
    for row in 0..h {
        let t = 1.0 - (f64::from(row) + 0.5) / f64::from(h);
        canvas.fill([left, top + row, BAR_WIDTH, 1], panel.color_map.at(t));
    }
    canvas.frame([left, top, BAR_WIDTH, h], BLACK);
    let values = bar_ticks(panel);
    for (value, label) in values.iter().zip(labels(&values)) {
        let y = top + (f64::from(h) * (1.0 - (value - low) / (high - low))).round() as i32;
        canvas.fill([left + BAR_WIDTH + 2, y - 1, TICK, 2], BLACK);
        canvas.text(
            &label,
            (left + BAR_WIDTH + TICK + 6, y),
            TEXT_SIZE,
            Anchor::Start,
        )?;
    }
    let unit_y = top - GAP - TEXT_SIZE as i32 / 2;

    canvas.text(&panel.unit, (left, unit_y), TEXT_SIZE, Anchor::Start)
}
