//! Damage reports and bounded inflation, shared by the readers.

use std::io::Read;

/// Most bytes that one byte of a deflate stream can become (258 bytes for each 2-bit code pair).
const MAX_DEFLATE_RATIO: u64 = 1032;

/// Where and how a file departs from its format.
#[derive(Debug)]
pub(super) struct Damage {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// What was expected and what was found.
    pub problem: String,
}

impl Damage {
    pub(super) fn new(offset: usize, problem: impl Into<String>) -> Self {
        Self {
            offset: offset as u64,
            problem: problem.into(),
        }
    }
}

/// Whether `compressed` bytes of deflate data can hold `claimed` bytes.
pub(super) fn can_inflate_to(compressed: u64, claimed: u64) -> bool {
    claimed
        <= compressed
            .saturating_mul(MAX_DEFLATE_RATIO)
            .saturating_add(64)
}

/// Reads at most `limit` bytes; the vector grows with what really arrives.
pub(super) fn read_at_most(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(limit).read_to_end(&mut out)?;
    Ok(out)
}
