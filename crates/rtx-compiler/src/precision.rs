//! How exact the products of single-precision arrays have to be.

use std::fmt;
use std::str::FromStr;

/// Arithmetic that a program may use for products of `f32` arrays (and of their row blocks).
///
/// A tier is a permission to be less exact, not an order: a device that has no faster arithmetic for it, such as the
/// CPU, computes in `f32`. Factors are rounded as stated, sums are always accumulated in `f32`. Everything but
/// products (elementwise operations, reductions, the optimizer's update) is `f32` in every tier, and programs on
/// `f64` are not affected.
///
/// ```
/// use rtx_compiler::Precision;
/// let tier: Precision = "tf32".parse()?;
/// assert_eq!((tier, tier.to_string()), (Precision::Tf32, "tf32".to_string()));
/// assert!("f8".parse::<Precision>().unwrap_err().to_string().contains("bf16x3"));
/// # Ok::<(), rtx_compiler::UnknownPrecision>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// As exact as a float32 product: relative error about 1e-7 of the sum of the terms' magnitudes.
    #[default]
    F32,
    /// Each factor is the sum of two bfloat16 numbers, three products of four are made: about 1e-5.
    Bf16x3,
    /// Factors keep 10 bits behind the leading one: about 1e-3. Range of float32.
    Tf32,
    /// Factors keep 7 bits behind the leading one: about 1e-2. Range of float32.
    Bf16,
    /// Factors keep 10 bits behind the leading one: about 1e-3. Range up to 65504, numbers below 6e-8 become zero;
    /// a training scales its loss because of that.
    F16,
}

impl Precision {
    /// All tiers, the most exact first.
    pub const ALL: [Precision; 5] = [
        Precision::F32,
        Precision::Bf16x3,
        Precision::Tf32,
        Precision::Bf16,
        Precision::F16,
    ];

    /// Name for people and files.
    pub fn name(self) -> &'static str {
        match self {
            Precision::F32 => "f32",
            Precision::Bf16x3 => "bf16x3",
            Precision::Tf32 => "tf32",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Precision {
    type Err = UnknownPrecision;

    fn from_str(name: &str) -> Result<Self, UnknownPrecision> {
        let found = Precision::ALL.into_iter().find(|p| p.name() == name);
        found.ok_or_else(|| UnknownPrecision(name.to_string()))
    }
}

/// A name that no [`Precision`] has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPrecision(pub String);

impl fmt::Display for UnknownPrecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Precision::ALL.map(Precision::name).join(", ");
        write!(f, "no precision '{}'; there are {names}", self.0)
    }
}

impl std::error::Error for UnknownPrecision {}

/// What a compilation is told beside the graph. Part of the key of a cached program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CompileOptions {
    /// Arithmetic of products.
    pub precision: Precision,
}

impl From<Precision> for CompileOptions {
    fn from(precision: Precision) -> Self {
        CompileOptions { precision }
    }
}
