//! The few vector instructions that the product kernel needs, for each instruction set.

/// A register of `LANES` elements.
///
/// # Safety
/// Methods need the instruction set of the type, and pointers to as many elements as they move.
pub(super) trait Vector: Copy {
    type Element: Copy;
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn splat(x: *const Self::Element) -> Self;
    unsafe fn load(x: *const Self::Element) -> Self;
    /// The first `n < LANES` elements; zeros follow.
    unsafe fn load_part(x: *const Self::Element, n: usize) -> Self;
    unsafe fn store(self, to: *mut Self::Element);
    /// The first `n < LANES` elements.
    unsafe fn store_part(self, to: *mut Self::Element, n: usize);
    /// `self * b + c`, rounded once.
    unsafe fn fma(self, b: Self, c: Self) -> Self;
    unsafe fn add(self, b: Self) -> Self;
}

#[cfg(target_arch = "x86_64")]
pub(super) mod x86 {
    use super::Vector;
    use std::arch::x86_64::*;

    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512F32(__m512);
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx512F64(__m512d);
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2F32(__m256);
    #[derive(Clone, Copy)]
    pub(in super::super) struct Avx2F64(__m256d);

    /// Masks of the first n lanes, by a window on this table.
    const LANES_32: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];
    const LANES_64: [i64; 8] = [-1, -1, -1, -1, 0, 0, 0, 0];

    unsafe fn mask_32(n: usize) -> __m256i {
        // SAFETY: n <= 8.
        unsafe { _mm256_loadu_si256(LANES_32.as_ptr().add(8 - n).cast()) }
    }
    unsafe fn mask_64(n: usize) -> __m256i {
        // SAFETY: n <= 4.
        unsafe { _mm256_loadu_si256(LANES_64.as_ptr().add(4 - n).cast()) }
    }

    macro_rules! vector {
        ($name:ident, $t:ty, $lanes:expr, $zero:ident, $set:ident, $load:ident, $store:ident, $fma:ident, $add:ident,
         |$x:ident, $n:ident| $load_part:expr, |$v:ident, $to:ident, $m:ident| $store_part:expr) => {
            impl Vector for $name {
                type Element = $t;
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: by the caller, as in all that follows.
                    unsafe { Self($zero()) }
                }
                #[inline(always)]
                unsafe fn splat(x: *const $t) -> Self {
                    unsafe { Self($set(*x)) }
                }
                #[inline(always)]
                unsafe fn load(x: *const $t) -> Self {
                    unsafe { Self($load(x)) }
                }
                #[inline(always)]
                unsafe fn load_part($x: *const $t, $n: usize) -> Self {
                    unsafe { Self($load_part) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut $t) {
                    unsafe { $store(to, self.0) }
                }
                #[inline(always)]
                unsafe fn store_part(self, $to: *mut $t, $m: usize) {
                    let $v = self.0;
                    unsafe { $store_part }
                }
                #[inline(always)]
                unsafe fn fma(self, b: Self, c: Self) -> Self {
                    unsafe { Self($fma(self.0, b.0, c.0)) }
                }
                #[inline(always)]
                unsafe fn add(self, b: Self) -> Self {
                    unsafe { Self($add(self.0, b.0)) }
                }
            }
        };
    }
    vector!(
        Avx512F32,
        f32,
        16,
        _mm512_setzero_ps,
        _mm512_set1_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_fmadd_ps,
        _mm512_add_ps,
        |x, n| _mm512_maskz_loadu_ps((1u16 << n) - 1, x),
        |v, to, n| _mm512_mask_storeu_ps(to, (1u16 << n) - 1, v)
    );
    vector!(
        Avx512F64,
        f64,
        8,
        _mm512_setzero_pd,
        _mm512_set1_pd,
        _mm512_loadu_pd,
        _mm512_storeu_pd,
        _mm512_fmadd_pd,
        _mm512_add_pd,
        |x, n| _mm512_maskz_loadu_pd((1u8 << n) - 1, x),
        |v, to, n| _mm512_mask_storeu_pd(to, (1u8 << n) - 1, v)
    );
    vector!(
        Avx2F32,
        f32,
        8,
        _mm256_setzero_ps,
        _mm256_set1_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_fmadd_ps,
        _mm256_add_ps,
        |x, n| _mm256_maskload_ps(x, mask_32(n)),
        |v, to, n| _mm256_maskstore_ps(to, mask_32(n), v)
    );
    vector!(
        Avx2F64,
        f64,
        4,
        _mm256_setzero_pd,
        _mm256_set1_pd,
        _mm256_loadu_pd,
        _mm256_storeu_pd,
        _mm256_fmadd_pd,
        _mm256_add_pd,
        |x, n| _mm256_maskload_pd(x, mask_64(n)),
        |v, to, n| _mm256_maskstore_pd(to, mask_64(n), v)
    );
}
