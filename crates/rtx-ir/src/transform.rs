//! Reverse and forward mode, substitution, and the resolution of derivative requests.

use crate::jet::JetBuilder;
use crate::rules::{jvp_rule, plus, vjp_rule};
use crate::{Error, Node, Op, Result};
use std::collections::{HashMap, HashSet};

/// Nodes among `all` that depend on one of `wrt` (themselves included).
fn dependents(all: &[Node], wrt: &[Node]) -> HashSet<u64> {
    let mut set: HashSet<u64> = wrt.iter().map(Node::id).collect();
    for n in all {
        if n.inputs().iter().any(|i| set.contains(&i.id())) {
            set.insert(n.id());
        }
    }
    set
}

/// A value whose history was dropped may have depended on the variable: refuse instead of returning zero.
fn check_history(all: &[Node], wrt: &[Node], transform: &'static str) -> Result<()> {
    for w in wrt.iter().filter(|w| !w.is_traced()) {
        if let Some(cut) = all.iter().find(|n| n.is_cut() && n.id() > w.id()) {
            return Err(Error::NotDifferentiable {
                op: cut.op().name(),
                transform,
                location: cut.location(),
                hint:
                    "this value was read before the derivative was taken and its history is gone; \
                       call watch() on the variable before using it, or use grad(closure)"
                        .into(),
            });
        }
    }
    Ok(())
}

/// Refuses a tangent or cotangent of another shape or element type than its value.
fn same_type(op: &'static str, value: &Node, other: &Node, hint: &str) -> Result<()> {
    if value.shape() != other.shape() {
        return Err(Error::Shape {
            op,
            shapes: vec![value.shape().clone(), other.shape().clone()],
            location: other.location(),
            hint: hint.into(),
        });
    }
    if value.dtype() != other.dtype() {
        return Err(Error::DType {
            op,
            dtypes: vec![value.dtype(), other.dtype()],
            location: other.location(),
            hint: hint.into(),
        });
    }
    Ok(())
}

/// Cotangents of `wrt`, given those of `outputs` (`None`: ones, for scalar outputs).
///
/// Variables that the outputs do not depend on get zeros.
///
/// # Errors
/// An operation without a rule, a non-scalar output without cotangent, an error node, or a lost history.
pub fn vjp(outputs: &[Node], cotangents: &[Option<Node>], wrt: &[Node]) -> Result<Vec<Node>> {
    let outputs = resolve_requests(outputs)?;
    let all = Node::topological(&outputs);
    for n in all.iter().chain(wrt) {
        n.check()?;
    }
    check_history(&all, wrt, "vjp")?;
    let active = dependents(&all, wrt);
    let mut ct: HashMap<u64, Node> = HashMap::new();
    for (i, out) in outputs.iter().enumerate() {
        let seed = match cotangents.get(i).and_then(Clone::clone) {
            Some(c) => {
                same_type("vjp", out, &c, "a cotangent needs the type of its output")?;
                c
            }
            None if out.shape().rank() == 0 => out.scalar_like(1.0),
            None => {
                return Err(Error::NotScalar {
                    shape: out.shape().clone(),
                    location: out.location(),
                });
            }
        };
        accumulate(&mut ct, out, seed);
    }
    let stops: HashSet<u64> = wrt.iter().map(Node::id).collect();
    for n in all.iter().rev().filter(|n| active.contains(&n.id())) {
        let inputs = n.inputs();
        // A variable is a leaf of this derivative, unless another variable lies below it.
        if stops.contains(&n.id()) && !inputs.iter().any(|i| active.contains(&i.id())) {
            continue;
        }
        let Some(c) = ct.get(&n.id()).cloned() else {
            continue;
        };
        for (input, g) in inputs.iter().zip(vjp_rule(n, &inputs, &c)?) {
            if let Some(g) = g.filter(|_| active.contains(&input.id())) {
                g.check()?;
                accumulate(&mut ct, input, g.broadcast_to(input.shape()));
            }
        }
    }
    Ok(wrt
        .iter()
        .map(|w| {
            ct.get(&w.id())
                .cloned()
                .unwrap_or_else(|| w.counted_zeros())
        })
        .collect())
}

fn accumulate(ct: &mut HashMap<u64, Node>, node: &Node, g: Node) {
    let sum = plus(ct.remove(&node.id()), Some(g));
    if let Some(s) = sum {
        ct.insert(node.id(), s);
    }
}

/// Tangents of `outputs` along `tangents` of `wrt`.
///
/// # Errors
/// As [`vjp`].
pub fn jvp(outputs: &[Node], wrt: &[Node], tangents: &[Node]) -> Result<Vec<Node>> {
    let outputs = resolve_requests(outputs)?;
    let all = Node::topological(&outputs);
    for n in all.iter().chain(wrt).chain(tangents) {
        n.check()?;
    }
    check_history(&all, wrt, "jvp")?;
    let mut tan: HashMap<u64, Node> = HashMap::new();
    for (w, t) in wrt.iter().zip(tangents) {
        same_type("jvp", w, t, "a tangent needs the type of its variable")?;
        tan.insert(w.id(), t.clone());
    }
    for n in &all {
        if tan.contains_key(&n.id()) {
            continue;
        }
        let inputs = n.inputs();
        let ts: Vec<Option<Node>> = inputs.iter().map(|i| tan.get(&i.id()).cloned()).collect();
        if ts.iter().any(Option::is_some)
            && let Some(t) = jvp_rule(n, &inputs, &ts)?
        {
            t.check()?;
            tan.insert(n.id(), t.broadcast_to(n.shape()));
        }
    }
    Ok(outputs
        .iter()
        .map(|o| {
            tan.get(&o.id())
                .cloned()
                .unwrap_or_else(|| o.counted_zeros())
        })
        .collect())
}

/// Rebuilds `outputs` with the nodes of `map` (by number) replaced.
pub fn substitute(outputs: &[Node], map: &HashMap<u64, Node>) -> Vec<Node> {
    let mut new: HashMap<u64, Node> = HashMap::new();
    for n in Node::topological(outputs) {
        if let Some(r) = map.get(&n.id()) {
            new.insert(n.id(), r.clone());
            continue;
        }
        let inputs = n.inputs();
        if inputs.iter().any(|i| new.contains_key(&i.id())) {
            let fresh: Vec<Node> = inputs
                .iter()
                .map(|i| new.get(&i.id()).cloned().unwrap_or_else(|| i.clone()))
                .collect();
            let refs: Vec<&Node> = fresh.iter().collect();
            let declared = Some((n.dtype(), n.shape().clone()));
            new.insert(
                n.id(),
                Node::new_at(n.op().clone(), &refs, declared, n.location()),
            );
        }
    }
    outputs
        .iter()
        .map(|o| new.get(&o.id()).cloned().unwrap_or_else(|| o.clone()))
        .collect()
}

/// Requests whose fields need no other request. The derivative of a formula that itself has derivatives
/// in it (the divergence of a flux) waits for the next round, when those are ordinary values.
fn innermost_requests(outputs: &[Node]) -> Vec<Node> {
    let mut pending = HashSet::new();
    let mut innermost = Vec::new();
    for n in Node::topological(outputs) {
        let request = matches!(n.op(), Op::Derivative(_)) && n.value().is_none();
        let nested = n.inputs().iter().any(|i| pending.contains(&i.id()));
        if request && !nested {
            innermost.push(n.clone());
        }
        if request || nested {
            pending.insert(n.id());
        }
    }
    innermost
}

/// Replaces every derivative request that `outputs` need by the channels of one jet per coordinate array.
///
/// # Errors
/// An operation without a rule between the coordinates and a field.
pub fn resolve_requests(outputs: &[Node]) -> Result<Vec<Node>> {
    let mut outputs = outputs.to_vec();
    loop {
        let requests = innermost_requests(&outputs);
        if requests.is_empty() {
            return Ok(outputs);
        }
        let mut builders: HashMap<u64, JetBuilder> = HashMap::new();
        let mut map = HashMap::new();
        for r in &requests {
            let inputs = r.inputs();
            let (Op::Derivative(terms), [field, coordinates]) = (r.op(), inputs.as_slice()) else {
                continue;
            };
            let builder = builders
                .entry(coordinates.id())
                .or_insert_with(|| JetBuilder::new(coordinates));
            builder.extend(field)?;
            map.insert(
                r.id(),
                builder.request(field, terms)?.broadcast_to(r.shape()),
            );
        }
        outputs = substitute(&outputs, &map);
        for o in &outputs {
            o.check()?;
        }
    }
}
