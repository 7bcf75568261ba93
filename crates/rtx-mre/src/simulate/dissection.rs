//! Nested dissection of a rectangular grid: the order in which a five-point stencil is eliminated.
//!
//! A rectangle is cut by a line of cells into two halves that do not touch; the halves are eliminated
//! first, then the line (A. George, *Nested dissection of a regular finite element mesh*, SIAM J.
//! Numer. Anal. 10, 1973). For n cells this costs O(n^1.5) operations and O(n log n) memory.

use std::collections::HashMap;

/// Rectangles of at most this many cells are eliminated as one dense block.
const LEAF_CELLS: usize = 12;

/// Bytes of one complex f64.
const ENTRY: f64 = 16.0;

/// A rectangle of cells, half-open on both axes.
#[derive(Clone, Copy, Debug)]
struct Rect {
    x: (usize, usize),
    y: (usize, usize),
}

impl Rect {
    fn extent(self) -> (usize, usize) {
        (self.x.1 - self.x.0, self.y.1 - self.y.0)
    }
}

/// Where a rectangle of the given extent is cut: `(along_x, offset of the separating line)`, or
/// `None` for a leaf.
fn cut((dx, dy): (usize, usize)) -> Option<(bool, usize)> {
    if dx * dy <= LEAF_CELLS {
        None
    } else if dx >= dy {
        Some((true, dx / 2))
    } else {
        Some((false, dy / 2))
    }
}

/// One step of the elimination: `own` cells leave, `ring` cells receive their Schur complement.
#[derive(Debug)]
pub(super) struct Node {
    /// Cells eliminated here, as a range of [`Plan::order`].
    pub own: std::ops::Range<usize>,
    /// Cells next to the node's rectangle; all of them are eliminated later.
    pub ring: Vec<u32>,
    /// Whether the Schur complements of the two preceding subtrees are added here.
    pub has_children: bool,
}

/// The elimination order of a grid of `nx` times `ny` cells; cell (i, j) has the number `i * ny + j`.
/// It depends on the shape only and is shared by all frequencies.
#[derive(Debug)]
pub(super) struct Plan {
    pub nx: usize,
    pub ny: usize,
    /// Cells in the order of their elimination.
    pub order: Vec<u32>,
    /// Position of each cell in `order`.
    pub rank: Vec<u32>,
    /// Nodes in postorder: both children come before their parent.
    pub nodes: Vec<Node>,
}

impl Plan {
    /// Plans the elimination of a grid of fewer than 2^32 cells.
    pub fn new(nx: usize, ny: usize) -> Self {
        let mut plan = Plan {
            nx,
            ny,
            order: Vec::with_capacity(nx * ny),
            rank: vec![0; nx * ny],
            nodes: Vec::new(),
        };
        plan.dissect(Rect {
            x: (0, nx),
            y: (0, ny),
        });
        for (rank, &cell) in plan.order.iter().enumerate() {
            plan.rank[cell as usize] = rank as u32;
        }
        plan
    }

    fn dissect(&mut self, rect: Rect) {
        let (mut own, mut has_children) = (rect, false);
        if let Some((along_x, offset)) = cut(rect.extent()) {
            let (mut low, mut high) = (rect, rect);
            if along_x {
                let line = rect.x.0 + offset;
                (low.x.1, own.x, high.x.0) = (line, (line, line + 1), line + 1);
            } else {
                let line = rect.y.0 + offset;
                (low.y.1, own.y, high.y.0) = (line, (line, line + 1), line + 1);
            }
            self.dissect(low);
            self.dissect(high);
            has_children = true;
        }
        let start = self.order.len();
        for i in own.x.0..own.x.1 {
            for j in own.y.0..own.y.1 {
                self.order.push((i * self.ny + j) as u32);
            }
        }
        let ring = self.ring(rect);
        self.nodes.push(Node {
            own: start..self.order.len(),
            ring,
            has_children,
        });
    }

    fn ring(&self, rect: Rect) -> Vec<u32> {
        let cell = |i: usize, j: usize| (i * self.ny + j) as u32;
        let mut ring = Vec::new();
        if rect.x.0 > 0 {
            ring.extend((rect.y.0..rect.y.1).map(|j| cell(rect.x.0 - 1, j)));
        }
        if rect.x.1 < self.nx {
            ring.extend((rect.y.0..rect.y.1).map(|j| cell(rect.x.1, j)));
        }
        if rect.y.0 > 0 {
            ring.extend((rect.x.0..rect.x.1).map(|i| cell(i, rect.y.0 - 1)));
        }
        if rect.y.1 < self.ny {
            ring.extend((rect.x.0..rect.x.1).map(|i| cell(i, rect.y.1)));
        }
        ring
    }
}

/// Bytes that one factorisation of a grid of `nx` times `ny` cells holds at its peak. Found from the
/// shapes alone, before anything is allocated; f64, so that absurd sizes cannot overflow.
pub(super) fn predicted_bytes(nx: usize, ny: usize) -> f64 {
    let cost = subtree(nx, ny, [false; 4], &mut HashMap::new());
    let vectors = 12.0 * nx as f64 * ny as f64; // modulus, stencil, right-hand side, solution, plan
    ENTRY * (cost.factor + cost.peak + vectors)
}

/// Entries that a subtree keeps (`factor`), needs for a time (`peak`) and passes on (`schur`).
#[derive(Clone, Copy)]
struct Cost {
    factor: f64,
    peak: f64,
    schur: f64,
}

/// Cost of a rectangle with the given neighbours (low x, high x, low y, high y). Halves of halves
/// repeat a handful of shapes, so the memo stays small at any size.
fn subtree(
    dx: usize,
    dy: usize,
    open: [bool; 4],
    memo: &mut HashMap<(usize, usize, [bool; 4]), Cost>,
) -> Cost {
    if let Some(&known) = memo.get(&(dx, dy, open)) {
        return known;
    }
    let side = |is_open: bool, length: usize| if is_open { length as f64 } else { 0.0 };
    let ring = side(open[0], dy) + side(open[1], dy) + side(open[2], dx) + side(open[3], dx);
    let too_big_for_leaf = dx.checked_mul(dy).is_none_or(|cells| cells > LEAF_CELLS);
    let mut below = Cost {
        factor: 0.0,
        peak: 0.0,
        schur: 0.0,
    };
    let own = if too_big_for_leaf {
        let (along_x, length, width) = if dx >= dy {
            (true, dx, dy)
        } else {
            (false, dy, dx)
        };
        let first = if along_x { 0 } else { 2 };
        let (mut low_open, mut high_open) = (open, open);
        low_open[first + 1] = true;
        high_open[first] = true;
        let (low, high) = (length / 2, length - length / 2 - 1);
        let mut half = |length: usize, open| {
            let (dx, dy) = if along_x {
                (length, width)
            } else {
                (width, length)
            };
            subtree(dx, dy, open, memo)
        };
        let (low, high) = (half(low, low_open), half(high, high_open));
        below = Cost {
            factor: low.factor + high.factor,
            peak: low.peak.max(low.schur + high.peak),
            schur: low.schur + high.schur,
        };
        width as f64
    } else {
        (dx * dy) as f64
    };
    let front = own + ring;
    let cost = Cost {
        factor: below.factor + front * own,
        peak: below.peak.max(below.schur + front * front),
        schur: ring * ring,
    };
    memo.insert((dx, dy, open), cost);
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_eliminated_once_and_neighbours_share_a_front() {
        for (nx, ny) in [(1, 1), (1, 90), (7, 5), (33, 20), (40, 71)] {
            let plan = Plan::new(nx, ny);
            let mut seen = plan.order.clone();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..(nx * ny) as u32), "{nx} x {ny}");
            for node in &plan.nodes {
                let front: Vec<u32> = plan.order[node.own.clone()]
                    .iter()
                    .chain(&node.ring)
                    .copied()
                    .collect();
                for &cell in &plan.order[node.own.clone()] {
                    let (i, j) = (cell as usize / ny, cell as usize % ny);
                    let mut neighbours = Vec::new();
                    if i + 1 < nx {
                        neighbours.push(cell + ny as u32);
                    }
                    if j + 1 < ny {
                        neighbours.push(cell + 1);
                    }
                    for other in neighbours {
                        if plan.rank[other as usize] > plan.rank[cell as usize] {
                            assert!(front.contains(&other), "{nx} x {ny}: {cell} {other}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn prediction_counts_the_entries_of_the_plan() {
        let plan = Plan::new(61, 47);
        let factor: usize = plan
            .nodes
            .iter()
            .map(|node| node.own.len() * (node.own.len() + node.ring.len()))
            .sum();
        let cost = subtree(61, 47, [false; 4], &mut HashMap::new());
        assert_eq!(cost.factor, factor as f64);
        assert!(predicted_bytes(usize::MAX / 2, 3) > 1e18);
    }
}
