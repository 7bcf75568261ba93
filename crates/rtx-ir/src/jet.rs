//! Truncated Taylor series in several variables: all the partial derivatives that a problem asks for,
//! propagated together.
//!
//! A jet of a value holds its partial derivatives by the columns of a coordinate array. The channels are
//! made on demand and shared: asking for a Laplacian builds the value, the first derivatives and *one*
//! channel for the weighted sum of second derivatives (the forward Laplacian of Li et al. 2023,
//! arXiv:2307.08214, here for sums of any order), not the Hessian.

use crate::rules::{plus, power_slope, reapply, reapply_concat, times};
use crate::{BinaryOp, DType, Error, Node, Op, ReduceKind, Result, Shape, UnaryOp};
use smallvec::SmallVec;
use std::collections::HashMap;

/// Orders of a mixed partial derivative: `[2, 1]` is d3/dx2dy.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct MultiIndex(SmallVec<[u8; 4]>);

impl MultiIndex {
    /// From the order in each variable.
    pub fn new(orders: &[u8]) -> Self {
        let used = orders.iter().rposition(|&o| o > 0).map_or(0, |p| p + 1);
        MultiIndex(orders[..used].iter().copied().collect())
    }

    /// First derivative by variable `i`.
    pub fn unit(i: usize) -> Self {
        let mut orders = vec![0; i + 1];
        orders[i] = 1;
        MultiIndex::new(&orders)
    }

    /// Number of variables up to the last one with an order above zero.
    pub fn dims(&self) -> usize {
        self.0.len()
    }

    /// Total order.
    pub fn degree(&self) -> usize {
        self.0.iter().map(|&o| usize::from(o)).sum()
    }

    fn order(&self, i: usize) -> u8 {
        self.0.get(i).copied().unwrap_or(0)
    }

    /// Order by order sum.
    pub fn plus(&self, other: &Self) -> Self {
        let n = self.dims().max(other.dims());
        MultiIndex::new(
            &(0..n)
                .map(|i| self.order(i) + other.order(i))
                .collect::<Vec<_>>(),
        )
    }

    fn minus(&self, other: &Self) -> Self {
        MultiIndex::new(
            &(0..self.dims())
                .map(|i| self.order(i) - other.order(i))
                .collect::<Vec<_>>(),
        )
    }

    fn first_variable(&self) -> usize {
        self.0.iter().position(|&o| o > 0).unwrap_or(0)
    }

    /// Every index not above this one, with the binomial coefficient of the pair.
    fn below(&self) -> Vec<(MultiIndex, f64)> {
        let mut all = vec![(Vec::new(), 1.0)];
        for &n in &self.0 {
            let mut next = Vec::new();
            for (prefix, c) in &all {
                let mut binomial = 1.0;
                for k in 0..=n {
                    let mut p: Vec<u8> = prefix.clone();
                    p.push(k);
                    next.push((p, c * binomial));
                    binomial = binomial * f64::from(n - k) / f64::from(k + 1);
                }
            }
            all = next;
        }
        all.into_iter()
            .map(|(p, c)| (MultiIndex::new(&p), c))
            .collect()
    }
}

type Terms = Vec<(MultiIndex, f64)>;

fn terms_key(terms: &Terms) -> String {
    terms
        .iter()
        .map(|(i, w)| format!("{:?}*{:x};", i.0, w.to_bits()))
        .collect()
}

/// Builds the jets of values that depend on one coordinate array.
pub struct JetBuilder {
    coordinates: Node,
    depends: HashMap<u64, bool>,
    parts: HashMap<(u64, MultiIndex), Option<Node>>,
    sums: HashMap<(u64, String), Option<Node>>,
    slopes: HashMap<u64, Option<Node>>,
}

impl JetBuilder {
    /// For derivatives by the columns of `coordinates` ([points, dimensions]).
    pub fn new(coordinates: &Node) -> Self {
        JetBuilder {
            coordinates: coordinates.clone(),
            depends: HashMap::from([(coordinates.id(), true)]),
            parts: HashMap::new(),
            sums: HashMap::new(),
            slopes: HashMap::new(),
        }
    }

    /// Registers the history of `field`, so that later look-ups do not recurse through it.
    ///
    /// # Errors
    /// A value of that history carries an error.
    pub fn extend(&mut self, field: &Node) -> Result<()> {
        for n in Node::topological(std::slice::from_ref(field)) {
            n.check()?;
            self.depends_on(&n);
        }
        Ok(())
    }

    fn depends_on(&mut self, n: &Node) -> bool {
        if let Some(&d) = self.depends.get(&n.id()) {
            return d;
        }
        let d = !matches!(n.op(), Op::Identity { stop: true })
            && n.inputs().iter().any(|i| self.depends_on(i));
        self.depends.insert(n.id(), d);
        d
    }

    /// The value of a request on `field`: `sum weight * partial derivative`.
    ///
    /// # Errors
    /// An operation without a rule.
    pub fn request(&mut self, field: &Node, terms: &Terms) -> Result<Node> {
        let order: Vec<Node> = Node::topological(std::slice::from_ref(field))
            .into_iter()
            .filter(|n| self.depends.get(&n.id()) == Some(&true))
            .collect();
        let degree = terms.iter().map(|(i, _)| i.degree()).max().unwrap_or(0);
        let weighted =
            terms.len() > 1 && degree > 1 && terms.iter().all(|(i, _)| i.degree() == degree);
        let mut total: Option<Node> = None;
        if weighted {
            let below: Vec<MultiIndex> = terms
                .iter()
                .flat_map(|(i, _)| i.below())
                .map(|(i, _)| i)
                .filter(|i| i.degree() < degree)
                .collect();
            for n in &order {
                for i in &below {
                    self.part(n, i)?;
                }
                self.sum(n, terms)?;
            }
            total = self.sum(field, terms)?;
        } else {
            for (index, w) in terms {
                for n in &order {
                    self.part(n, index)?;
                }
                let term = self
                    .part(field, index)?
                    .map(|p| times(&p, &p.scalar_like(*w)));
                total = plus(total, term);
            }
        }
        Ok(total.unwrap_or_else(|| field.counted_zeros()))
    }

    fn refuse(n: &Node, hint: &str) -> Error {
        Error::NotDifferentiable {
            op: n.op().name(),
            transform: "jet",
            location: n.location(),
            hint: hint.into(),
        }
    }

    /// Partial derivative `index` of `n`; `None` is zero.
    fn part(&mut self, n: &Node, index: &MultiIndex) -> Result<Option<Node>> {
        if index.degree() == 0 {
            return Ok(Some(n.clone()));
        }
        if !self.depends_on(n) {
            return Ok(None);
        }
        let key = (n.id(), index.clone());
        if let Some(p) = self.parts.get(&key) {
            return Ok(p.clone());
        }
        let p = self.compute_part(n, index)?;
        if let Some(p) = &p {
            p.check()?;
        }
        self.parts.insert(key, p.clone());
        Ok(p)
    }

    fn compute_part(&mut self, n: &Node, index: &MultiIndex) -> Result<Option<Node>> {
        if n.is(&self.coordinates) {
            return Ok((index.degree() == 1).then(|| self.unit_direction(index.first_variable())));
        }
        let inputs = n.inputs();
        self.check_points(n, &inputs)?;
        match n.op() {
            _ if self.has_slope(n, &inputs) => {
                let Some(slope) = self.slope(n, &inputs) else {
                    return Ok(None);
                };
                let mut total = None;
                for (g, step) in self.chain_terms(index) {
                    let (a, b) = (self.part(&slope, &g.0)?, self.part(&inputs[0], &step)?);
                    total = plus(total, product(a, b, g.1));
                }
                Ok(total)
            }
            Op::Binary(BinaryOp::Mul) | Op::Dot(_) => {
                let mut total = None;
                if inputs[0].is(&inputs[1]) && matches!(n.op(), Op::Binary(_)) {
                    return self.square_part(&inputs[0], index);
                }
                for (b, c) in index.below() {
                    let (l, r) = (
                        self.part(&inputs[0], &b)?,
                        self.part(&inputs[1], &index.minus(&b))?,
                    );
                    total = plus(total, bilinear(n, l, r, c));
                }
                Ok(total)
            }
            _ => self.linear(n, &inputs, |s, x| s.part(x, index)),
        }
    }

    /// (x x)_index with the symmetric terms counted once.
    fn square_part(&mut self, x: &Node, index: &MultiIndex) -> Result<Option<Node>> {
        let mut total = None;
        for (b, c) in index.below() {
            let other = index.minus(&b);
            if b > other {
                continue;
            }
            let twice = if b == other { 1.0 } else { 2.0 };
            let term = product(self.part(x, &other)?, self.part(x, &b)?, c * twice);
            total = plus(total, term);
        }
        Ok(total)
    }

    /// Leibniz terms of d^index f(x) = d^(index - e) (f'(x) dx_e): (order of f', coefficient), order of x.
    fn chain_terms(&self, index: &MultiIndex) -> Vec<((MultiIndex, f64), MultiIndex)> {
        let unit = MultiIndex::unit(index.first_variable());
        let rest = index.minus(&unit);
        rest.below()
            .into_iter()
            .map(|(g, c)| ((g.clone(), c), rest.minus(&g).plus(&unit)))
            .collect()
    }

    /// Functions of one operand: the unary ones, and powers whose exponent is the same at all points.
    fn has_slope(&mut self, n: &Node, inputs: &[Node]) -> bool {
        match n.op() {
            Op::Unary(u) => *u != UnaryOp::Neg,
            Op::Binary(BinaryOp::Pow) => !self.depends_on(&inputs[1]),
            _ => false,
        }
    }

    /// Refuses an operation that moves or mixes the points, which are the leading axis of every value
    /// that depends on the coordinates.
    fn check_points(&mut self, n: &Node, inputs: &[Node]) -> Result<()> {
        for (i, x) in inputs.iter().enumerate() {
            if self.depends_on(x) && !keeps_points(n, i, inputs) {
                return Err(Self::refuse(
                    n,
                    "a derivative by coordinates is taken point by point; this operation mixes the points",
                ));
            }
        }
        Ok(())
    }

    fn slope(&mut self, n: &Node, inputs: &[Node]) -> Option<Node> {
        self.slopes
            .entry(n.id())
            .or_insert_with(|| match n.op() {
                Op::Unary(u) => u.derivative(&inputs[0], n),
                _ => power_slope(&inputs[0], &inputs[1]),
            })
            .clone()
    }

    /// The weighted sum of derivatives of one order as a single channel.
    fn sum(&mut self, n: &Node, terms: &Terms) -> Result<Option<Node>> {
        if !self.depends_on(n) {
            return Ok(None);
        }
        let key = (n.id(), terms_key(terms));
        if let Some(p) = self.sums.get(&key) {
            return Ok(p.clone());
        }
        let p = self.compute_sum(n, terms)?;
        if let Some(p) = &p {
            p.check()?;
        }
        self.sums.insert(key, p.clone());
        Ok(p)
    }

    fn compute_sum(&mut self, n: &Node, terms: &Terms) -> Result<Option<Node>> {
        if n.is(&self.coordinates) {
            return Ok(None);
        }
        let inputs = n.inputs();
        self.check_points(n, &inputs)?;
        match n.op() {
            _ if self.has_slope(n, &inputs) => {
                let Some(slope) = self.slope(n, &inputs) else {
                    return Ok(None);
                };
                let mut total = product(Some(slope.clone()), self.sum(&inputs[0], terms)?, 1.0);
                for (index, w) in terms {
                    for (g, step) in self.chain_terms(index) {
                        if g.0.degree() > 0 {
                            let (a, b) = (self.part(&slope, &g.0)?, self.part(&inputs[0], &step)?);
                            total = plus(total, product(a, b, g.1 * w));
                        }
                    }
                }
                Ok(total)
            }
            Op::Binary(BinaryOp::Mul) | Op::Dot(_) => {
                let left = bilinear(
                    n,
                    self.sum(&inputs[0], terms)?,
                    Some(inputs[1].clone()),
                    1.0,
                );
                let right = bilinear(
                    n,
                    Some(inputs[0].clone()),
                    self.sum(&inputs[1], terms)?,
                    1.0,
                );
                let mut total = plus(left, right);
                for (index, w) in terms {
                    for (b, c) in index.below() {
                        let other = index.minus(&b);
                        if b.degree() > 0 && other.degree() > 0 {
                            let (l, r) =
                                (self.part(&inputs[0], &b)?, self.part(&inputs[1], &other)?);
                            total = plus(total, bilinear(n, l, r, c * w));
                        }
                    }
                }
                Ok(total)
            }
            _ => self.linear(n, &inputs, |s, x| s.sum(x, terms)),
        }
    }

    /// Operations that are linear in the operand that depends on the coordinates, or written as such.
    fn linear(
        &mut self,
        n: &Node,
        inputs: &[Node],
        channel: impl Fn(&mut Self, &Node) -> Result<Option<Node>>,
    ) -> Result<Option<Node>> {
        match n.op() {
            Op::Identity { stop: false } => channel(self, &inputs[0]),
            Op::Unary(UnaryOp::Neg) => Ok(channel(self, &inputs[0])?.map(|p| p.neg())),
            Op::Binary(BinaryOp::Add) => {
                Ok(plus(channel(self, &inputs[0])?, channel(self, &inputs[1])?))
            }
            Op::Binary(BinaryOp::Sub) => {
                let right = channel(self, &inputs[1])?.map(|p| p.neg());
                Ok(match (channel(self, &inputs[0])?, right) {
                    (Some(l), Some(r)) => Some(l.sub(&r.neg())),
                    (l, r) => l.or(r),
                })
            }
            Op::Binary(BinaryOp::Div) => {
                let product = self.alias(n, || inputs[0].mul(&inputs[1].unary(UnaryOp::Recip)));
                channel(self, &product)
            }
            Op::Binary(BinaryOp::Pow) => {
                let power = self.alias(n, || {
                    inputs[1]
                        .mul(&inputs[0].unary(UnaryOp::Log))
                        .unary(UnaryOp::Exp)
                });
                channel(self, &power)
            }
            Op::Binary(BinaryOp::Max | BinaryOp::Min) => {
                let larger = matches!(n.op(), Op::Binary(BinaryOp::Max));
                let chosen = self.alias(n, || {
                    let (a, b) = (&inputs[0], &inputs[1]);
                    let first = if larger {
                        b.binary(BinaryOp::Le, a)
                    } else {
                        a.binary(BinaryOp::Le, b)
                    };
                    first.select(a, b)
                });
                channel(self, &chosen)
            }
            Op::Select => {
                let (yes, no) = (channel(self, &inputs[1])?, channel(self, &inputs[2])?);
                if yes.is_none() && no.is_none() {
                    return Ok(None);
                }
                let zero = n.scalar_like(0.0);
                let (yes, no) = (yes.unwrap_or_else(|| zero.clone()), no.unwrap_or(zero));
                Ok(Some(inputs[0].select(&yes, &no).broadcast_to(n.shape())))
            }
            Op::Cast if n.dtype().is_float() && inputs[0].dtype().is_float() => {
                Ok(channel(self, &inputs[0])?.map(|p| p.cast(n.dtype())))
            }
            Op::Concat(_) => {
                let parts = inputs
                    .iter()
                    .map(|x| channel(self, x))
                    .collect::<Result<Vec<_>>>()?;
                Ok(parts
                    .iter()
                    .any(Option::is_some)
                    .then(|| reapply_concat(n, inputs, &parts)))
            }
            Op::Reduce(ReduceKind::Sum, _)
            | Op::Reshape
            | Op::Broadcast(_)
            | Op::Permute(_)
            | Op::Slice { .. }
            | Op::Pad { .. } => Ok(channel(self, &inputs[0])?.map(|p| reapply(n, &[&p]))),
            Op::Gather | Op::ScatterAdd => {
                Ok(channel(self, &inputs[0])?.map(|p| reapply(n, &[&p, &inputs[1]])))
            }
            Op::Binary(b) if b.is_predicate() => Ok(None),
            Op::Unary(UnaryOp::Not) | Op::Cast | Op::ArgMax(_) => Ok(None),
            Op::Derivative(_) => Err(Self::refuse(
                n,
                "take all derivatives of one value by one coordinate array",
            )),
            _ => Err(Self::refuse(
                n,
                "use jvp or grad, or write the value with other operations",
            )),
        }
    }

    /// The same value in operations that have a rule, made once per node.
    fn alias(&mut self, n: &Node, make: impl FnOnce() -> Node) -> Node {
        self.slopes
            .entry(n.id())
            .or_insert_with(|| Some(make()))
            .clone()
            .unwrap_or_else(|| n.clone())
    }

    fn unit_direction(&self, variable: usize) -> Node {
        let x = &self.coordinates;
        let columns = x.shape().row_elements() / x.shape().dims()[0].fixed().unwrap_or(1).max(1);
        let columns = if x.shape().rows().is_some() {
            x.shape().row_elements()
        } else {
            columns
        };
        let index = Node::iota(&Shape::of(&[columns]), 0, DType::I32);
        let hit = index.binary(BinaryOp::Eq, &index.scalar_like(variable as f64));
        hit.cast(x.dtype()).broadcast_to(x.shape())
    }
}

/// True where row `p` of the result takes from operand `i` nothing but its row `p`.
fn keeps_points(n: &Node, i: usize, inputs: &[Node]) -> bool {
    let same_leading = n.shape().dims().first() == inputs[i].shape().dims().first();
    match n.op() {
        Op::Reduce(_, axes) => !axes.contains(&0),
        Op::Reshape => same_leading,
        Op::Broadcast(axes) => axes.first() == Some(&0) && same_leading,
        Op::Permute(perm) => perm.first() == Some(&0),
        Op::ArgMax(axis) | Op::Concat(axis) | Op::Slice { axis, .. } | Op::Pad { axis, .. } => {
            *axis != 0
        }
        // The index of a gather has no derivative; the rows of a table are not points.
        Op::Gather => i == 1,
        Op::ScatterAdd => false,
        Op::Dot(d) => {
            let (batch, contract) = if i == 0 {
                (&d.lhs_batch, &d.lhs_contract)
            } else {
                (&d.rhs_batch, &d.rhs_contract)
            };
            let left_free = inputs[0].shape().rank() - d.lhs_batch.len() - d.lhs_contract.len();
            match batch.first() {
                Some(first) => *first == 0,
                None => !contract.contains(&0) && (i == 0 || left_free == 0),
            }
        }
        _ => true,
    }
}

fn product(a: Option<Node>, b: Option<Node>, c: f64) -> Option<Node> {
    let p = a?.mul(&b?);
    Some(times(&p, &p.scalar_like(c)))
}

fn bilinear(n: &Node, a: Option<Node>, b: Option<Node>, c: f64) -> Option<Node> {
    let p = match n.op() {
        Op::Dot(d) => a?.dot(&b?, d.clone()),
        _ => a?.mul(&b?),
    };
    Some(times(&p, &p.scalar_like(c)))
}

/// All partial derivatives of `field` by the columns of `coordinates` up to a total order, in
/// graded lexicographic order, as `(index, value)`.
///
/// # Errors
/// An operation without a rule between the coordinates and the field.
pub fn jet(field: &Node, coordinates: &Node, order: usize) -> Result<Vec<(MultiIndex, Node)>> {
    let resolved = crate::resolve_requests(std::slice::from_ref(field))?;
    let mut builder = JetBuilder::new(coordinates);
    builder.extend(&resolved[0])?;
    let dims = coordinates
        .shape()
        .dims()
        .get(1)
        .and_then(|d| d.fixed())
        .unwrap_or(0);
    let top = MultiIndex::new(&vec![u8::try_from(order).unwrap_or(u8::MAX); dims]);
    let mut indices: Vec<MultiIndex> = top
        .below()
        .into_iter()
        .map(|(i, _)| i)
        .filter(|i| i.degree() <= order)
        .collect();
    indices.sort_by(|a, b| a.degree().cmp(&b.degree()).then(b.cmp(a)));
    indices
        .into_iter()
        .map(|i| {
            let value = builder.request(&resolved[0], &vec![(i.clone(), 1.0)])?;
            Ok((i, value))
        })
        .collect()
}
