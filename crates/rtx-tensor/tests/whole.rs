//! Operations on whole arrays: the CPU against the op-by-op reference, on shapes around the edges of tiles, empty
//! ones, and values that are not numbers.

use rtx_tensor::{DType, Device, DotDims, HostArray, Shape, Tensor, compile, grad};
use rtx_testing::{Nan, assert_close};

const ALL: [DType; 5] = [DType::Bool, DType::I32, DType::I64, DType::F32, DType::F64];
/// Extents around those of tiles, strips and blocks of columns.
const EXTENTS: [usize; 16] = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65];

/// Numbers that repeat from run to run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.roll(from.len())]
    }

    /// Extents of at most `most` elements.
    fn dims(&mut self, rank: usize, most: usize) -> Vec<usize> {
        loop {
            let dims: Vec<usize> = (0..rank).map(|_| self.pick(&EXTENTS)).collect();
            // Empty arrays are one case among many.
            let empty = dims.contains(&0) && self.roll(4) > 0;
            if dims.iter().product::<usize>() <= most && !empty {
                return dims;
            }
        }
    }

    fn order(&mut self, rank: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..rank).collect();
        for k in (1..rank).rev() {
            order.swap(k, self.roll(k + 1));
        }
        order
    }

    /// Values of an element type, with signed zeros, infinities and NaN where it has them.
    fn values(&mut self, dtype: DType, dims: &[usize]) -> HostArray {
        let n = dims.iter().product();
        let one = |_| match self.roll(40) {
            0 if dtype.is_float() => f64::NAN,
            1 if dtype.is_float() => f64::NEG_INFINITY,
            2 => -0.0,
            _ => self.roll(2001) as f64 / 8.0 - 125.0,
        };
        HostArray::new(dtype, dims, (0..n).map(one).collect())
    }

    /// Small whole numbers, whose sums are exact in every order.
    fn whole(&mut self, dtype: DType, dims: &[usize]) -> HostArray {
        let n = dims.iter().product();
        let one = |_| self.roll(15) as f64 - 7.0;
        HostArray::new(dtype, dims, (0..n).map(one).collect())
    }

    /// Numbers between -1 and 1.
    fn fractions(&mut self, dtype: DType, dims: &[usize]) -> HostArray {
        let n = dims.iter().product();
        let one = |_| self.roll(1 << 30) as f64 / f64::from(1 << 29) - 1.0;
        HostArray::new(dtype, dims, (0..n).map(one).collect())
    }

    /// Numbers of rows of which some are outside of the table.
    fn rows(&mut self, dims: &[usize], rows: usize) -> HostArray {
        let n: usize = dims.iter().product();
        let dtype = self.pick(&[DType::I32, DType::I64]);
        let one = |_| match self.roll(12) {
            0 => -3.0,
            1 => rows as f64 + 5.0,
            _ => self.roll(rows) as f64,
        };
        HostArray::new(dtype, dims, (0..n).map(one).collect())
    }
}

fn tensor(a: &HostArray, dev: &Device) -> Tensor {
    Tensor::from_f64(&a.data, Shape::of(&a.dims), a.dtype, dev)
}

/// Results of the CPU and of the reference.
#[track_caller]
fn both(inputs: &[HostArray], op: impl Fn(&[Tensor]) -> Tensor) -> [HostArray; 2] {
    [Device::cpu(), Device::reference()].map(|dev| {
        let x: Vec<Tensor> = inputs.iter().map(|a| tensor(a, &dev)).collect();
        op(&x).to_host().unwrap()
    })
}

/// Equal numbers.
#[track_caller]
fn equal(what: &str, inputs: &[HostArray], op: impl Fn(&[Tensor]) -> Tensor) -> [HostArray; 2] {
    let [found, expected] = both(inputs, op);
    assert_eq!(found.dims, expected.dims, "{what}");
    assert_eq!(found.dtype, expected.dtype, "{what}");
    assert_close(what, &found.data, &expected.data, 0.0, Nan::Equal);
    [found, expected]
}

/// The same bits, but for those of a NaN.
#[track_caller]
fn same(what: &str, inputs: &[HostArray], op: impl Fn(&[Tensor]) -> Tensor) {
    let [found, expected] = equal(what, inputs, op);
    for (k, (f, e)) in found.data.iter().zip(&expected.data).enumerate() {
        let signs = f.is_sign_negative() == e.is_sign_negative();
        assert!(signs || f.is_nan(), "{what}: sign of element {k}");
    }
}

/// Sums of `terms` terms of magnitude 1.
#[track_caller]
fn near(what: &str, terms: usize, inputs: &[HostArray], op: impl Fn(&[Tensor]) -> Tensor) {
    let [found, expected] = both(inputs, op);
    assert_eq!(found.dims, expected.dims, "{what}");
    let eps = match found.dtype {
        DType::F32 => f64::from(f32::EPSILON),
        _ => f64::EPSILON,
    };
    let allowed = eps * (terms as f64 + 1.0);
    assert_close(what, &found.data, &expected.data, allowed, Nan::Fails);
}

#[test]
fn ranges_of_the_leading_axis() {
    let mut dice = Dice(1);
    for case in 0..300 {
        let dtype = dice.pick(&ALL);
        let rank = 1 + dice.roll(3);
        let mut dims = dice.dims(rank, 20_000);
        if case % 50 == 0 {
            dims = vec![3000, 65];
        }
        let x = dice.values(dtype, &dims);
        let start = dice.roll(dims[0] + 1);
        let end = start + dice.roll(dims[0] - start + 1);
        let what = format!("{dtype} {dims:?}");
        same(
            &format!("slice {start}..{end} of {what}"),
            std::slice::from_ref(&x),
            |x| x[0].slice(0, start, end),
        );
        let (before, after) = (dice.roll(20), dice.roll(20));
        same(
            &format!("pad {before}+{after} of {what}"),
            std::slice::from_ref(&x),
            |x| x[0].pad(0, before, after),
        );
        let mut other = dims.clone();
        other[0] = dice.pick(&EXTENTS);
        let y = dice.values(dtype, &other);
        same(
            &format!("concat of {what} and {other:?}"),
            &[x.clone(), y, x],
            |x| Tensor::concat(&[&x[0], &x[1], &x[2]], 0),
        );
    }
}

#[test]
fn permutations() {
    let mut dice = Dice(2);
    let check = |dice: &mut Dice, dtype: DType, dims: &[usize], order: &[usize]| {
        let x = dice.values(dtype, dims);
        let what = format!("{dtype} {dims:?} by {order:?}");
        same(&what, &[x], |x| x[0].permute(order));
    };
    for _ in 0..400 {
        let (dtype, rank) = (dice.pick(&ALL), 2 + dice.roll(4));
        let (dims, order) = (dice.dims(rank, 30_000), dice.order(rank));
        check(&mut dice, dtype, &dims, &order);
    }
    // Strips of tiles, and sides shorter than one.
    for dims in [[1100, 70], [70, 1100], [4100, 5], [5, 4100], [512, 512]] {
        for dtype in ALL {
            check(&mut dice, dtype, &dims, &[1, 0]);
        }
    }
    // Units of every length.
    for unit in 1..=9 {
        for dtype in ALL {
            check(&mut dice, dtype, &[33, 70, unit], &[1, 0, 2]);
        }
    }
}

#[test]
fn sums_into_rows() {
    let mut dice = Dice(3);
    let mut cases: Vec<(Vec<usize>, usize, Vec<usize>)> = Vec::new();
    for _ in 0..200 {
        let (rank, inner) = (dice.roll(3), dice.roll(3));
        let rows = 1 + dice.roll(70);
        cases.push((dice.dims(rank, 900), rows, dice.dims(inner, 100)));
    }
    // Groups of updates, threads with rows of their own, and one thread for all.
    cases.extend([
        (vec![150_000], 9, vec![]),
        (vec![150_000], 100_000, vec![]),
        (vec![300, 100], 40, vec![5]),
        (vec![9000], 8999, vec![16]),
        (vec![4000], 3, vec![65]),
    ]);
    for (index, rows, width) in cases {
        let dtype = dice.pick(&ALL);
        let updates: Vec<usize> = index.iter().chain(&width).copied().collect();
        let table: Vec<usize> = [rows].iter().chain(&width).copied().collect();
        let i = dice.rows(&index, rows);
        let what = format!("{dtype} {updates:?} at {index:?} into {table:?}");
        let op = |x: &[Tensor]| x[0].scatter_add(&x[1], Shape::of(&table));
        let inputs = [dice.whole(dtype, &updates), i.clone()];
        same(&what, &inputs, op);
        let dtype = dice.pick(&[DType::F32, DType::F64]);
        let inputs = [dice.fractions(dtype, &updates), i.clone()];
        let terms = index.iter().product();
        near(&format!("fractions, {what}"), terms, &inputs, op);
        // Few updates: a NaN or an infinity stays in its own rows.
        if terms < 40 {
            same(&what, &[dice.values(dtype, &updates), i], op);
        }
    }
}

/// The gradient of a gather is the sum of the weights of each row, here known without either device.
#[test]
fn gradient_of_a_gather() {
    let mut dice = Dice(4);
    for (n, rows, width) in [(7, 3, 2), (500, 40, 3), (150_000, 50, 1), (9000, 9000, 17)] {
        let index = dice.rows(&[n], rows);
        let weights = dice.whole(DType::F32, &[n, width]);
        let mut expected = vec![0.0; rows * width];
        for (k, i) in index.data.iter().enumerate() {
            let row = i.clamp(0.0, (rows - 1) as f64) as usize;
            for c in 0..width {
                expected[row * width + c] += weights.data[k * width + c];
            }
        }
        let dev = Device::cpu();
        let (i, w) = (tensor(&index, &dev), tensor(&weights, &dev));
        let table = tensor(&dice.fractions(DType::F32, &[rows, width]), &dev);
        let found = grad(|t: &Tensor| (t.gather(&i) * &w).sum_all())(&table);
        let found = found.to_host().unwrap().data;
        let what = format!("{n} of {rows} rows of {width}");
        assert_close(&what, &found, &expected, 0.0, Nan::Fails);
    }
}

#[test]
fn one_row_of_a_table() {
    let mut dice = Dice(5);
    for _ in 0..60 {
        let dtype = dice.pick(&ALL);
        let rank = dice.roll(3);
        let dims: Vec<usize> = [1 + dice.roll(9)]
            .into_iter()
            .chain(dice.dims(rank, 300))
            .collect();
        let inputs = [dice.values(dtype, &dims), dice.rows(&[], dims[0])];
        let what = format!("row {} of {dtype} {dims:?}", inputs[1].data[0]);
        same(&what, &inputs, |x| x[0].gather(&x[1]));
    }
}

#[test]
fn largest_elements() {
    let mut dice = Dice(6);
    for case in 0..300 {
        let (dtype, rank) = (dice.pick(&ALL), 1 + dice.roll(4));
        let mut dims = dice.dims(rank, 20_000);
        if case % 60 == 0 {
            dims = vec![3, 500, 70];
        }
        let axis = dice.roll(dims.len());
        // Values with NaN, and few values so that many are equal.
        let x = match case % 2 {
            0 => dice.values(dtype, &dims),
            _ => dice.whole(dtype, &dims),
        };
        let what = format!("argmax {axis} of {dtype} {dims:?}");
        same(&what, &[x], |x| x[0].argmax(axis));
    }
}

/// A random product: operands, axes, and the number of terms.
fn product(dice: &mut Dice, dtype: DType, most: usize) -> ([HostArray; 2], DotDims, usize) {
    loop {
        let (batch, contracted) = (dice.roll(3), dice.roll(3));
        let (left, right) = (dice.roll(3), dice.roll(3));
        let shared = dice.dims(batch + contracted, most);
        let (l, r) = (dice.dims(left, most), dice.dims(right, most));
        let all = shared.iter().chain(&l).chain(&r).product::<usize>();
        if all > most || batch + contracted == 0 {
            continue;
        }
        // Each operand has its axes in an order of its own: `at[i]` is the place of shared axis i.
        let operand = |dice: &mut Dice, free: &[usize]| {
            let extents: Vec<usize> = shared.iter().chain(free).copied().collect();
            let order = dice.order(extents.len());
            let dims: Vec<usize> = order.iter().map(|&o| extents[o]).collect();
            let at = |i: usize| order.iter().position(|&o| o == i).unwrap();
            let at: Vec<usize> = (0..shared.len()).map(at).collect();
            (dice.whole(dtype, &dims), at)
        };
        let (a, lhs) = operand(dice, &l);
        let (b, rhs) = operand(dice, &r);
        let d = DotDims {
            lhs_batch: lhs[..batch].to_vec(),
            rhs_batch: rhs[..batch].to_vec(),
            lhs_contract: lhs[batch..].to_vec(),
            rhs_contract: rhs[batch..].to_vec(),
        };
        return ([a, b], d, shared[batch..].iter().product());
    }
}

#[test]
fn products() {
    let mut dice = Dice(7);
    for case in 0..500 {
        let dtype = dice.pick(&ALL[1..]);
        let most = if case % 10 == 0 { 400_000 } else { 20_000 };
        let (inputs, d, terms) = product(&mut dice, dtype, most);
        let what = format!("{dtype} {:?} x {:?}, {d:?}", inputs[0].dims, inputs[1].dims);
        let op = |x: &[Tensor]| x[0].dot_general(&x[1], d.clone());
        // The sign of a zero is not fixed.
        equal(&what, &inputs, op);
        if dtype.is_float() {
            let inputs = inputs.map(|x| dice.fractions(dtype, &x.dims));
            near(&what, terms, &inputs, op);
        }
    }
    // Rows of one product for several threads.
    for dtype in [DType::I32, DType::I64, DType::F32, DType::F64] {
        let inputs = [&[2, 150, 40], &[2, 40, 33]].map(|s| dice.whole(dtype, s));
        let d = DotDims {
            lhs_batch: vec![0],
            rhs_batch: vec![0],
            lhs_contract: vec![2],
            rhs_contract: vec![1],
        };
        let what = format!("{dtype} in pieces");
        equal(&what, &inputs, |x| x[0].dot_general(&x[1], d.clone()));
    }
}

/// One program for every number of rows, also none.
#[test]
fn run_time_numbers_of_rows() {
    let mut dice = Dice(8);
    let batched = DotDims {
        lhs_batch: vec![0],
        rhs_batch: vec![0],
        lhs_contract: vec![2],
        rhs_contract: vec![1],
    };
    let f = |x: &Vec<Tensor>| {
        vec![
            x[0].scatter_add(&x[1], [7, 4, 3]),
            x[0].argmax(1),
            x[0].dot_general(&x[2], batched.clone()),
        ]
    };
    let of = |inputs: &[HostArray], dev: &Device| -> Vec<Tensor> {
        let rows = |a| tensor(a, dev).rows("whole: rows").unwrap();
        inputs.iter().map(rows).collect()
    };
    let dev = Device::cpu();
    let mut step = None;
    for n in [5, 0, 1, 6000, 64] {
        let inputs = [
            dice.whole(DType::F32, &[n, 4, 3]),
            HostArray::new(DType::I64, &[n], dice.rows(&[n], 7).data),
            dice.whole(DType::F32, &[n, 3, 5]),
        ];
        let x = of(&inputs, &dev);
        let step = step.get_or_insert_with(|| {
            compile(|(): &(), x: &Vec<Tensor>| Ok(((), f(x))), &(), &x, &dev).unwrap()
        });
        let found = step.call((), &x).unwrap().1;
        let expected = f(&of(&inputs, &Device::reference()));
        for (k, (f, e)) in found.iter().zip(&expected).enumerate() {
            let (f, e) = (f.to_host().unwrap(), e.to_host().unwrap());
            assert_eq!(f.dims, e.dims);
            let what = format!("{n} rows, result {k}");
            assert_close(&what, &f.data, &e.data, 0.0, Nan::Fails);
        }
    }
}
