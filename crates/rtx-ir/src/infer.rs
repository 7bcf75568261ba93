//! Type rule of every operation: the one place where shapes and element types are decided.

use crate::op::Type;
use crate::{BinaryOp, DType, Dim, Error, Op, Result, Shape, UnaryOp};
use std::panic::Location;

type Loc = &'static Location<'static>;

fn shape_error(op: &'static str, types: &[Type], location: Loc, hint: impl Into<String>) -> Error {
    Error::Shape {
        op,
        shapes: types.iter().map(|t| t.1.clone()).collect(),
        location,
        hint: hint.into(),
    }
}

fn dtype_error(op: &'static str, types: &[Type], location: Loc, hint: impl Into<String>) -> Error {
    Error::DType {
        op,
        dtypes: types.iter().map(|t| t.0).collect(),
        location,
        hint: hint.into(),
    }
}

fn check_axis(op: &'static str, axis: usize, shape: &Shape, location: Loc) -> Result<()> {
    if axis < shape.rank() {
        Ok(())
    } else {
        Err(Error::Axis {
            op,
            axis,
            shape: shape.clone(),
            location,
        })
    }
}

fn fixed_axis(op: &Op, axis: usize, types: &[Type], location: Loc) -> Result<usize> {
    check_axis(op.name(), axis, &types[0].1, location)?;
    types[0].1.dims()[axis].fixed().ok_or_else(|| {
        shape_error(
            op.name(),
            types,
            location,
            format!("axis {axis} is a run-time number of rows and cannot be cut or joined"),
        )
    })
}

/// Type of the result of `op` on operands of `types`; `declared` for leaves, reshape, broadcast, cast.
pub(crate) fn infer(op: &Op, types: &[Type], declared: Option<Type>, loc: Loc) -> Result<Type> {
    let name = op.name();
    let arity = match op {
        Op::Data | Op::Input(_) | Op::Constant(_) | Op::Iota(_) | Op::Error(_) => Some(0),
        Op::Binary(_) | Op::Dot(_) | Op::Gather | Op::ScatterAdd | Op::Derivative(_) => Some(2),
        Op::Select => Some(3),
        Op::Concat(_) => None,
        _ => Some(1),
    };
    if arity.is_some_and(|n| n != types.len()) || types.is_empty() && arity.is_none() {
        return Err(Error::Other {
            op: name,
            message: format!("{} operands given", types.len()),
            location: loc,
        });
    }
    let wanted = || {
        declared.clone().ok_or_else(|| Error::Other {
            op: name,
            message: "no result type given".into(),
            location: loc,
        })
    };
    match op {
        Op::Data | Op::Input(_) | Op::Constant(_) | Op::Error(_) => wanted(),
        Op::Iota(axis) => {
            let (d, s) = wanted()?;
            check_axis(name, *axis, &s, loc)?;
            Ok((d, s))
        }
        Op::Random(_) => {
            let (d, s) = wanted()?;
            if !d.is_float() {
                return Err(Error::DType {
                    op: name,
                    dtypes: vec![d],
                    location: loc,
                    hint: "random numbers are f32 or f64".into(),
                });
            }
            if types[0].1.rank() != 0 {
                return Err(shape_error(name, types, loc, "the key is a scalar"));
            }
            Ok((d, s))
        }
        Op::RowCount => {
            let (d, _) = wanted()?;
            check_axis(name, 0, &types[0].1, loc)?;
            Ok((d, Shape::scalar()))
        }
        Op::Identity { .. } => Ok(types[0].clone()),
        Op::Unary(u) => {
            let ok = match u {
                UnaryOp::Not => types[0].0 == DType::Bool,
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Sign => types[0].0 != DType::Bool,
                _ => types[0].0.is_float(),
            };
            if ok {
                Ok(types[0].clone())
            } else {
                Err(dtype_error(
                    name,
                    types,
                    loc,
                    "convert the operand with cast()",
                ))
            }
        }
        Op::Binary(b) => {
            if types[0].0 != types[1].0 {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "both operands need one element type; convert one with cast()",
                ));
            }
            let logical = matches!(b, BinaryOp::And | BinaryOp::Or);
            let real = matches!(b, BinaryOp::Pow | BinaryOp::Atan2);
            if logical != (types[0].0 == DType::Bool) && *b != BinaryOp::Eq
                || real && !types[0].0.is_float()
            {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "the operation is not defined for this element type",
                ));
            }
            if types[0].1 != types[1].1 {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    "both operands need one shape",
                ));
            }
            Ok((
                if b.is_predicate() {
                    DType::Bool
                } else {
                    types[0].0
                },
                types[0].1.clone(),
            ))
        }
        Op::Select => {
            if types[0].0 != DType::Bool || types[1].0 != types[2].0 {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "needs a bool condition and two branches of one element type",
                ));
            }
            if types[0].1 != types[1].1 || types[1].1 != types[2].1 {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    "condition and branches need one shape",
                ));
            }
            Ok(types[1].clone())
        }
        Op::Cast => Ok((wanted()?.0, types[0].1.clone())),
        Op::Reduce(_, axes) => {
            for (i, a) in axes.iter().enumerate() {
                check_axis(name, *a, &types[0].1, loc)?;
                if axes[..i].contains(a) {
                    return Err(shape_error(
                        name,
                        types,
                        loc,
                        format!("axis {a} is named twice"),
                    ));
                }
            }
            if types[0].0 == DType::Bool {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "convert truth values with cast() first",
                ));
            }
            Ok((types[0].0, types[0].1.without(axes)))
        }
        Op::ArgMax(axis) => {
            fixed_axis(op, *axis, types, loc)?;
            Ok((DType::I64, types[0].1.without(&[*axis])))
        }
        Op::Dot(d) => dot(d, types, loc),
        Op::Reshape => reshape(types, wanted()?, loc),
        Op::Broadcast(axes) => {
            let (_, s) = wanted()?;
            let fits = axes.len() == types[0].1.rank()
                && axes.windows(2).all(|w| w[0] < w[1])
                && axes
                    .iter()
                    .zip(types[0].1.dims())
                    .all(|(a, d)| s.dims().get(*a).is_some_and(|t| t == d || d.is_one()));
            if fits {
                leading_rows(name, types, s, types[0].0, loc)
            } else {
                Err(shape_error(
                    name,
                    types,
                    loc,
                    format!("the operand cannot be repeated to {s}"),
                ))
            }
        }
        Op::Permute(perm) => {
            let r = types[0].1.rank();
            let mut seen = vec![false; r];
            for &p in perm {
                if p < r {
                    seen[p] = true;
                }
            }
            if perm.len() != r || seen.contains(&false) {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    format!("{perm:?} is not an order of {r} axes"),
                ));
            }
            let shape: Shape = perm.iter().map(|&p| types[0].1.dims()[p]).collect();
            leading_rows(name, types, shape, types[0].0, loc)
        }
        Op::Slice { axis, start, end } => {
            let n = fixed_axis(op, *axis, types, loc)?;
            if start > end || *end > n {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    format!("{start}..{end} is outside axis {axis} of {n} elements"),
                ));
            }
            Ok((types[0].0, types[0].1.with(*axis, Dim::Fixed(end - start))))
        }
        Op::Pad {
            axis,
            before,
            after,
        } => {
            let n = fixed_axis(op, *axis, types, loc)?;
            Ok((
                types[0].0,
                types[0].1.with(*axis, Dim::Fixed(n + before + after)),
            ))
        }
        Op::Concat(axis) => {
            let mut total = 0;
            for t in types {
                total += fixed_axis(op, *axis, std::slice::from_ref(t), loc)?;
                if t.0 != types[0].0 {
                    return Err(dtype_error(
                        name,
                        types,
                        loc,
                        "all operands need one element type",
                    ));
                }
                if t.1.without(&[*axis]) != types[0].1.without(&[*axis]) {
                    return Err(shape_error(
                        name,
                        types,
                        loc,
                        format!("operands may differ along axis {axis} only"),
                    ));
                }
            }
            Ok((types[0].0, types[0].1.with(*axis, Dim::Fixed(total))))
        }
        Op::Gather => {
            if !matches!(types[1].0, DType::I32 | DType::I64) {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "the index needs an integer type",
                ));
            }
            let table = &types[0].1;
            if table.dims().first().and_then(|d| d.fixed()).unwrap_or(0) == 0 {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    "the table needs a leading axis of known size with at least one row",
                ));
            }
            Ok((
                types[0].0,
                types[1]
                    .1
                    .dims()
                    .iter()
                    .chain(&table.dims()[1..])
                    .copied()
                    .collect(),
            ))
        }
        Op::ScatterAdd => {
            let (_, s) = wanted()?;
            if !matches!(types[1].0, DType::I32 | DType::I64) {
                return Err(dtype_error(
                    name,
                    types,
                    loc,
                    "the index needs an integer type",
                ));
            }
            let rows = types[1].1.rank();
            let fits = types[0].1.dims().get(..rows) == Some(types[1].1.dims())
                && s.rank() > 0
                && types[0].1.dims()[rows..] == s.dims()[1..];
            if !fits {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    format!("the updates do not fit a table {s}"),
                ));
            }
            Ok((types[0].0, s))
        }
        Op::Derivative(terms) => {
            let x = &types[1].1;
            let columns = x.dims().get(1).and_then(|d| d.fixed()).unwrap_or(0);
            if x.rank() != 2 || terms.iter().any(|(i, _)| i.dims() > columns) {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    "coordinates are [points, dimensions], and the derivative names one of their columns",
                ));
            }
            if types[0].1.dims().first() != x.dims().first() {
                return Err(shape_error(
                    name,
                    types,
                    loc,
                    "the field and its coordinates need the same points as leading axis",
                ));
            }
            Ok(types[0].clone())
        }
    }
}

fn leading_rows(
    name: &'static str,
    types: &[Type],
    shape: Shape,
    dtype: DType,
    loc: Loc,
) -> Result<Type> {
    if shape.dims().iter().skip(1).any(|d| d.fixed().is_none()) {
        return Err(shape_error(
            name,
            types,
            loc,
            "a run-time number of rows must stay the leading axis",
        ));
    }
    Ok((dtype, shape))
}

fn dot(d: &crate::DotDims, types: &[Type], loc: Loc) -> Result<Type> {
    let name = "dot_general";
    let (a, b) = (&types[0], &types[1]);
    if a.0 != b.0 || a.0 == DType::Bool {
        return Err(dtype_error(
            name,
            types,
            loc,
            "both operands need one numeric element type",
        ));
    }
    if d.lhs_batch.len() != d.rhs_batch.len() || d.lhs_contract.len() != d.rhs_contract.len() {
        return Err(shape_error(
            name,
            types,
            loc,
            "batch and contracted axes come in pairs",
        ));
    }
    let pairs = d
        .lhs_batch
        .iter()
        .zip(&d.rhs_batch)
        .chain(d.lhs_contract.iter().zip(&d.rhs_contract));
    for (&l, &r) in pairs {
        check_axis(name, l, &a.1, loc)?;
        check_axis(name, r, &b.1, loc)?;
        if a.1.dims()[l] != b.1.dims()[r] {
            let hint = format!(
                "axis {l} of the left operand has {} elements, axis {r} of the right {}",
                a.1.dims()[l],
                b.1.dims()[r]
            );
            return Err(shape_error(name, types, loc, hint));
        }
    }
    for (batch, contract) in [
        (&d.lhs_batch, &d.lhs_contract),
        (&d.rhs_batch, &d.rhs_contract),
    ] {
        let mut axes: Vec<usize> = batch.iter().chain(contract).copied().collect();
        axes.sort_unstable();
        if let Some(w) = axes.windows(2).find(|w| w[0] == w[1]) {
            let hint = format!("axis {} of one operand is named twice", w[0]);
            return Err(shape_error(name, types, loc, hint));
        }
    }
    let free = |s: &Shape, batch: &[usize], contract: &[usize]| -> Vec<Dim> {
        (0..s.rank())
            .filter(|i| !batch.contains(i) && !contract.contains(i))
            .map(|i| s.dims()[i])
            .collect()
    };
    let shape: Shape = d
        .lhs_batch
        .iter()
        .map(|&i| a.1.dims()[i])
        .chain(free(&a.1, &d.lhs_batch, &d.lhs_contract))
        .chain(free(&b.1, &d.rhs_batch, &d.rhs_contract))
        .collect();
    leading_rows(name, types, shape, a.0, loc)
}

fn reshape(types: &[Type], (_, s): Type, loc: Loc) -> Result<Type> {
    let from = &types[0].1;
    let fits = from.rows() == s.rows()
        && s.dims().iter().skip(1).all(|d| d.fixed().is_some())
        && from.row_elements() == s.row_elements();
    if fits {
        Ok((types[0].0, s))
    } else {
        Err(shape_error(
            "reshape",
            types,
            loc,
            format!("{s} has another number of elements"),
        ))
    }
}
