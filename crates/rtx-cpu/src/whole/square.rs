//! Squares of four by four units, turned in registers.

use std::array::from_fn;

/// Side of a square.
pub(super) const M: usize = 4;

/// Bytes that stay together in a permutation.
pub(super) trait Unit: Copy {
    /// `to[b][a] = from[a][b]`; rows are `from_row` and `to_row` bytes apart.
    ///
    /// # Safety
    /// Both squares are in memory, at any alignment, and do not meet.
    #[inline(always)]
    unsafe fn turn(from: *const u8, from_row: usize, to: *mut u8, to_row: usize) {
        // SAFETY: by the caller.
        unsafe {
            let rows: [[Self; M]; M] =
                from_fn(|a| from.add(a * from_row).cast::<[Self; M]>().read_unaligned());
            for b in 0..M {
                let row: [Self; M] = from_fn(|a| rows[a][b]);
                to.add(b * to_row).cast::<[Self; M]>().write_unaligned(row);
            }
        }
    }
}

impl Unit for u8 {}
impl Unit for u16 {}
impl Unit for [u32; 3] {}
impl Unit for u128 {}
impl Unit for [u128; 2] {}

impl Unit for u32 {
    // Every processor of this architecture has these instructions; the compiler does not find them by itself.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn turn(from: *const u8, from_row: usize, to: *mut u8, to_row: usize) {
        use std::arch::x86_64::*;
        // SAFETY: by the caller.
        unsafe {
            let load = |a: usize| _mm_loadu_si128(from.add(a * from_row).cast());
            let (r0, r1, r2, r3) = (load(0), load(1), load(2), load(3));
            let (a, b) = (_mm_unpacklo_epi32(r0, r1), _mm_unpackhi_epi32(r0, r1));
            let (c, d) = (_mm_unpacklo_epi32(r2, r3), _mm_unpackhi_epi32(r2, r3));
            let store = |b: usize, v| _mm_storeu_si128(to.add(b * to_row).cast(), v);
            store(0, _mm_unpacklo_epi64(a, c));
            store(1, _mm_unpackhi_epi64(a, c));
            store(2, _mm_unpacklo_epi64(b, d));
            store(3, _mm_unpackhi_epi64(b, d));
        }
    }
}

impl Unit for u64 {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    unsafe fn turn(from: *const u8, from_row: usize, to: *mut u8, to_row: usize) {
        use std::arch::x86_64::*;
        // SAFETY: by the caller.
        unsafe {
            for (a, b) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
                let load = |k: usize| _mm_loadu_si128(from.add((a + k) * from_row + b * 8).cast());
                let store =
                    |k: usize, v| _mm_storeu_si128(to.add((b + k) * to_row + a * 8).cast(), v);
                let (r0, r1) = (load(0), load(1));
                store(0, _mm_unpacklo_epi64(r0, r1));
                store(1, _mm_unpackhi_epi64(r0, r1));
            }
        }
    }
}
