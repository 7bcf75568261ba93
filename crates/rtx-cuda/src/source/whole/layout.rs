//! Extents, strides and index arithmetic as text.

use rtx_ir::{Dim, RowDomain, Shape};

/// A number of elements: a constant, times the row count of at most one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// Product of the extents known at compilation.
    pub(crate) factor: usize,
    /// Position of the domain whose row count is the other factor.
    pub(crate) domain: Option<usize>,
}

impl Extent {
    /// A number known at compilation.
    pub(crate) fn fixed(factor: usize) -> Self {
        Extent {
            factor,
            domain: None,
        }
    }

    /// The number, given the row counts of the domains; `None` if one is missing or the product overflows.
    pub(crate) fn resolve(&self, rows: &[usize]) -> Option<usize> {
        match self.domain {
            None => Some(self.factor),
            Some(k) => self.factor.checked_mul(*rows.get(k)?),
        }
    }

    /// The number in a kernel, as a 64-bit expression.
    pub(crate) fn text(&self) -> String {
        match self.domain {
            None => format!("{}ll", self.factor),
            Some(k) => format!("l.rows[{k}] * {}ll", self.factor),
        }
    }
}

/// What the arrays of one kernel have in common.
pub(crate) struct Layout<'a> {
    domains: &'a [RowDomain],
    /// True where every array has fewer than 2^31 elements, known at compilation.
    small: bool,
}

impl<'a> Layout<'a> {
    /// `None` if a domain is missing, a run-time extent is not leading or a size overflows.
    pub(crate) fn new<'s>(
        shapes: impl Iterator<Item = &'s Shape>,
        domains: &'a [RowDomain],
    ) -> Option<Self> {
        let mut layout = Layout {
            domains,
            small: true,
        };
        for shape in shapes {
            let n = layout.count(shape)?;
            // Strides of an empty array may be large, but no index meets them.
            layout.small &= n.domain.is_none() && n.factor < 1 << 31;
        }
        Some(layout)
    }

    /// C type of positions in the arrays. 32-bit division is several times faster.
    pub(crate) fn index(&self) -> &'static str {
        if self.small { "int" } else { "long long" }
    }

    /// Elements of a shape.
    pub(crate) fn count(&self, shape: &Shape) -> Option<Extent> {
        let mut n = Extent::fixed(1);
        for (axis, d) in shape.dims().iter().enumerate() {
            match d {
                Dim::Fixed(f) => n.factor = n.factor.checked_mul(*f)?,
                Dim::Rows(r) if axis == 0 => n.domain = Some(self.position(*r)?),
                Dim::Rows(_) => return None,
            }
        }
        (n.factor < 1 << 62).then_some(n)
    }

    /// One extent in a kernel.
    pub(crate) fn extent(&self, dim: Dim) -> Option<String> {
        match dim {
            Dim::Fixed(n) => Some(n.to_string()),
            Dim::Rows(r) => Some(format!("l.rows[{}]", self.position(r)?)),
        }
    }

    fn position(&self, domain: RowDomain) -> Option<usize> {
        self.domains.iter().position(|d| *d == domain)
    }
}

/// Row-major strides: never run-time numbers, because only the leading extent may be one.
pub(crate) fn strides(shape: &Shape) -> Option<Vec<usize>> {
    let mut s = vec![1usize; shape.rank()];
    for i in (0..shape.rank().saturating_sub(1)).rev() {
        s[i] = s[i + 1].checked_mul(shape.dims()[i + 1].fixed()?)?;
    }
    Some(s)
}

/// Declarations of what `body` uses of the position `o` of element `e` of `shape` and of its index `i0`,
/// `i1`, ..., as numbers of type `index`.
pub(crate) fn indices(shape: &Shape, index: &str, body: &str) -> String {
    let Some(steps) = strides(shape) else {
        return String::new();
    };
    let mut text = String::new();
    for (k, (step, d)) in steps.iter().zip(shape.dims()).enumerate() {
        if !mentions(body, &format!("i{k}")) {
            continue;
        }
        // Extents of zero never meet a position; a division by a literal zero would not compile.
        let mut value = match step {
            0 | 1 => "o".to_string(),
            s => format!("o / {s}"),
        };
        if k > 0 {
            value += &format!(" % {}", d.fixed().unwrap_or(1).max(1));
        }
        text += &format!("        const {index} i{k} = {value};\n");
    }
    if text.is_empty() && !mentions(body, "o") {
        return text;
    }
    format!("        const {index} o = ({index})e;\n{text}")
}

/// True if the identifier `name` stands in `text`.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .any(|word| word == name)
}

/// `base` plus the sum of index times stride.
pub(crate) fn offset(terms: impl Iterator<Item = (String, usize)>, base: usize) -> String {
    let mut parts: Vec<String> = terms
        .filter(|(_, s)| *s != 0)
        .map(|(i, s)| match s {
            1 => i,
            _ => format!("{i} * {s}"),
        })
        .collect();
    if base != 0 || parts.is_empty() {
        parts.push(base.to_string());
    }
    parts.join(" + ")
}
