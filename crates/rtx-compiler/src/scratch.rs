//! Placement of a row kernel's values in scratch, in units of bytes per row of the block.

/// First-fit allocation of intervals that are live over a range of steps.
#[derive(Default)]
pub(crate) struct Scratch {
    /// (offset, size, first step, last step)
    taken: Vec<(usize, usize, usize, usize)>,
    /// Largest offset in use.
    pub(crate) size: usize,
}

impl Scratch {
    /// Places `size` bytes per row for the steps `first..=last`.
    pub(crate) fn place(&mut self, size: usize, first: usize, last: usize) -> usize {
        let mut overlapping: Vec<(usize, usize)> = self
            .taken
            .iter()
            .filter(|t| t.2 <= last && first <= t.3)
            .map(|t| (t.0, t.1))
            .collect();
        overlapping.sort_unstable();
        let mut at = 0;
        for (offset, length) in overlapping {
            if at + size <= offset {
                break;
            }
            at = at.max(offset + length);
        }
        self.taken.push((at, size, first, last));
        self.size = self.size.max(at + size);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reuses_what_is_dead() {
        let mut s = Scratch::default();
        let a = s.place(64, 0, 2);
        let b = s.place(64, 1, 3);
        let c = s.place(64, 3, 4);
        assert_eq!((a, b, c), (0, 64, 0));
        assert_eq!(s.size, 128);
    }
}
