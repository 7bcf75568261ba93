//! Bounds for unpacking: a few bytes of a file may claim to hold gigabytes.

use std::io::Read;

/// Most bytes that one byte of a deflate stream can become (258 bytes for each 2-bit code pair).
const MAX_DEFLATE_RATIO: u64 = 1032;

/// Whether `compressed` bytes of deflate data can hold `claimed` bytes.
pub fn can_inflate_to(compressed: u64, claimed: u64) -> bool {
    claimed
        <= compressed
            .saturating_mul(MAX_DEFLATE_RATIO)
            .saturating_add(64)
}

/// Reads at most `limit` bytes; the vector grows with what really arrives.
///
/// # Errors
/// Those of the reader.
pub fn read_at_most(reader: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut out = Vec::new();
    reader.take(limit).read_to_end(&mut out)?;
    Ok(out)
}
