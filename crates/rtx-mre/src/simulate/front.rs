//! Dense partial factorisation of one front, complex symmetric (not Hermitian).
//!
//! Real and imaginary parts lie in separate planes and every loop has a fixed order of plain
//! additions and products, so the compiler vectorises it and the bits are the same on every machine.

use num_complex::Complex64;

/// Columns eliminated before the rest of the front is updated.
const BLOCK: usize = 32;
/// Rows and columns of the register tile of the update.
const ROWS: usize = 4;
const COLS: usize = 2;

/// A symmetric matrix of `size` rows, column-major; only the lower triangle is meaningful.
#[derive(Debug, Default)]
pub(super) struct Front {
    size: usize,
    re: Vec<f64>,
    im: Vec<f64>,
    tiles: Vec<[[f64; ROWS]; 2]>,
    scaled: Vec<[f64; 2]>,
}

impl Front {
    /// Makes this a zero matrix of `size` rows, keeping its memory.
    pub fn reset(&mut self, size: usize) {
        self.size = size;
        for plane in [&mut self.re, &mut self.im] {
            plane.clear();
            plane.resize(size * size, 0.0);
        }
    }

    /// Adds `value` at (a, b) and, by symmetry, at (b, a).
    pub fn add(&mut self, a: usize, b: usize, value: Complex64) {
        let at = a.min(b) * self.size + a.max(b);
        self.re[at] += value.re;
        self.im[at] += value.im;
    }

    /// The entry at `row`, `column` with `row >= column`.
    pub fn get(&self, row: usize, column: usize) -> Complex64 {
        let at = column * self.size + row;
        Complex64::new(self.re[at], self.im[at])
    }

    /// Eliminates the first `count` rows: afterwards column p < `count` holds the pivot D_p on the
    /// diagonal and L below it, and the other columns hold the Schur complement.
    ///
    /// There is no pivoting: with viscosity the imaginary part of the matrix is definite, so every
    /// pivot is non-zero. A pivot that is zero or not finite is returned as an error.
    pub fn eliminate(&mut self, count: usize) -> Result<(), Complex64> {
        for start in (0..count).step_by(BLOCK) {
            let end = (start + BLOCK).min(count);
            self.factor_panel(start, end)?;
            self.update(start, end);
        }
        Ok(())
    }

    /// Eliminates columns `start..end` among themselves and divides them by their pivots; the
    /// undivided columns (L times D) below row `end` are kept in `scaled`.
    fn factor_panel(&mut self, start: usize, end: usize) -> Result<(), Complex64> {
        let size = self.size;
        let rows = size - end;
        self.scaled.clear();
        self.scaled.resize(rows * (end - start), [0.0; 2]);
        for p in start..end {
            let pivot = self.get(p, p);
            let inverse = pivot.inv();
            if !(inverse.re.is_finite() && inverse.im.is_finite()) {
                return Err(pivot);
            }
            let (head_re, tail_re) = self.re.split_at_mut((p + 1) * size);
            let (head_im, tail_im) = self.im.split_at_mut((p + 1) * size);
            let (col_re, col_im) = (&mut head_re[p * size..], &mut head_im[p * size..]);
            for j in p + 1..end {
                let l = Complex64::new(col_re[j], col_im[j]) * inverse;
                let at = (j - p - 1) * size;
                let target_re = &mut tail_re[at + j..at + size];
                let target_im = &mut tail_im[at + j..at + size];
                for (((t_re, t_im), &c_re), &c_im) in target_re
                    .iter_mut()
                    .zip(target_im)
                    .zip(&col_re[j..])
                    .zip(&col_im[j..])
                {
                    *t_re -= c_re * l.re - c_im * l.im;
                    *t_im -= c_re * l.im + c_im * l.re;
                }
            }
            for row in end..size {
                self.scaled[(row - end) * (end - start) + p - start] = [col_re[row], col_im[row]];
            }
            for (c_re, c_im) in col_re[p + 1..].iter_mut().zip(&mut col_im[p + 1..]) {
                let l = Complex64::new(*c_re, *c_im) * inverse;
                (*c_re, *c_im) = (l.re, l.im);
            }
        }
        Ok(())
    }

    /// Subtracts L D L^T of columns `start..end` from the lower triangle behind them.
    fn update(&mut self, start: usize, end: usize) {
        let (size, depth) = (self.size, end - start);
        let rows = size - end;
        self.pack(start, end);
        for first in (0..rows).step_by(COLS) {
            let columns = COLS.min(rows - first);
            let w0 = &self.scaled[first * depth..(first + 1) * depth];
            let w1 = if columns == COLS {
                &self.scaled[(first + 1) * depth..(first + 2) * depth]
            } else {
                w0
            };
            for chunk in first / ROWS..rows.div_ceil(ROWS) {
                let tile = &self.tiles[chunk * depth..(chunk + 1) * depth];
                let sums = product(tile, w0, w1);
                let row = chunk * ROWS;
                let height = ROWS.min(rows - row);
                for (c, sum) in sums.iter().enumerate().take(columns) {
                    let at = (end + first + c) * size + end + row;
                    for r in 0..height {
                        self.re[at + r] -= sum[0][r];
                        self.im[at + r] -= sum[1][r];
                    }
                }
            }
        }
    }

    /// Copies L below row `end` into tiles of `ROWS` rows, zero-padded.
    fn pack(&mut self, start: usize, end: usize) {
        let (size, depth) = (self.size, end - start);
        let rows = size - end;
        self.tiles.clear();
        self.tiles
            .resize(rows.div_ceil(ROWS) * depth, [[0.0; ROWS]; 2]);
        for p in 0..depth {
            let at = (start + p) * size + end;
            for row in 0..rows {
                let tile = &mut self.tiles[row / ROWS * depth + p];
                tile[0][row % ROWS] = self.re[at + row];
                tile[1][row % ROWS] = self.im[at + row];
            }
        }
    }
}

/// Product of a tile of L with two rows of L D: `[column][re, im][row]`.
#[inline(always)]
fn product(
    tile: &[[[f64; ROWS]; 2]],
    w0: &[[f64; 2]],
    w1: &[[f64; 2]],
) -> [[[f64; ROWS]; 2]; COLS] {
    let mut sums = [[[0.0; ROWS]; 2]; COLS];
    for ((l, w0), w1) in tile.iter().zip(w0).zip(w1) {
        for (sum, w) in sums.iter_mut().zip([w0, w1]) {
            for r in 0..ROWS {
                sum[0][r] += l[0][r] * w[0] - l[1][r] * w[1];
                sum[1][r] += l[0][r] * w[1] + l[1][r] * w[0];
            }
        }
    }
    sums
}
