//! The order of a row kernel's work: products of one matrix together, elementwise operations in long runs.

use crate::cluster::Role;
use crate::lower::Lowering;
use rtx_ir::{Op, ValueId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Work that becomes one step.
pub(crate) enum Unit {
    /// Elementwise operations of one width, operands before users.
    Elementwise(Vec<ValueId>),
    /// Products with one matrix.
    Dots(Vec<ValueId>),
    /// Any other single operation.
    Single(ValueId),
}

fn is_elementwise(op: &Op) -> bool {
    matches!(
        op,
        Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast | Op::Identity { .. }
    )
}

/// Groups products that share matrix, width and depth: those never depend on one another, because depth
/// counts the products on the way.
fn dot_groups(l: &Lowering<'_>, members: &[ValueId]) -> HashMap<ValueId, usize> {
    let mut depth: HashMap<ValueId, usize> = HashMap::new();
    let mut groups: BTreeMap<(ValueId, usize, String), usize> = BTreeMap::new();
    let mut of = HashMap::new();
    for &k in members {
        let i = &l.graph.instructions[k];
        let below = i
            .inputs
            .iter()
            .filter_map(|x| depth.get(x))
            .copied()
            .max()
            .unwrap_or(0);
        let product = matches!(i.op, Op::Dot(_)) && matches!(l.clusters.roles[k], Role::Row(_));
        depth.insert(k, below + usize::from(product));
        if product {
            let lhs = &l.graph.instructions[i.inputs[0]].shape;
            let key = (i.inputs[1], below, format!("{:?}{lhs:?}", i.op));
            let next = groups.len();
            of.insert(k, *groups.entry(key).or_insert(next));
        }
    }
    of
}

/// Orders the members of a row kernel. `skip` are values that are read in place.
pub(crate) fn order(l: &Lowering<'_>, members: &[ValueId], skip: &HashSet<ValueId>) -> Vec<Unit> {
    // Values read in place still carry the depth of the products below them.
    let groups = dot_groups(l, members);
    let members: Vec<ValueId> = members
        .iter()
        .copied()
        .filter(|k| !skip.contains(k))
        .collect();
    let inside: HashSet<ValueId> = members.iter().copied().collect();
    let mut sizes: HashMap<usize, usize> = HashMap::new();
    groups
        .values()
        .for_each(|g| *sizes.entry(*g).or_default() += 1);
    let mut waiting: HashMap<ValueId, usize> = HashMap::new();
    let mut users: HashMap<ValueId, Vec<ValueId>> = HashMap::new();
    for &k in &members {
        let needs: HashSet<ValueId> = tile_operands(l, k, skip)
            .into_iter()
            .filter(|x| inside.contains(x))
            .collect();
        waiting.insert(k, needs.len());
        for x in needs {
            users.entry(x).or_default().push(k);
        }
    }
    let mut ready: BTreeMap<ValueId, ()> = members
        .iter()
        .filter(|k| waiting[k] == 0)
        .map(|&k| (k, ()))
        .collect();
    let mut gathered: BTreeMap<usize, Vec<ValueId>> = BTreeMap::new();
    let mut units = Vec::new();
    let width = |k: ValueId| {
        l.graph.instructions[k]
            .shape
            .dims()
            .iter()
            .skip(1)
            .filter_map(|d| d.fixed())
            .product::<usize>()
    };
    let finish =
        |k: ValueId, ready: &mut BTreeMap<ValueId, ()>, waiting: &mut HashMap<ValueId, usize>| {
            for &u in users.get(&k).into_iter().flatten() {
                if let Some(n) = waiting.get_mut(&u) {
                    *n -= 1;
                    if *n == 0 {
                        ready.insert(u, ());
                    }
                }
            }
        };
    loop {
        // Products whose group is complete, and operations that free their operands, go first.
        let singles: Vec<ValueId> = ready
            .keys()
            .copied()
            .filter(|k| !is_elementwise(&l.graph.instructions[*k].op))
            .collect();
        let mut progress = false;
        for k in singles {
            ready.remove(&k);
            match groups.get(&k) {
                Some(g) => {
                    let group = gathered.entry(*g).or_default();
                    group.push(k);
                    if group.len() == sizes[g] {
                        let group = gathered.remove(g).unwrap_or_default();
                        group
                            .iter()
                            .for_each(|&k| finish(k, &mut ready, &mut waiting));
                        units.push(Unit::Dots(group));
                        progress = true;
                    }
                }
                None => {
                    finish(k, &mut ready, &mut waiting);
                    units.push(Unit::Single(k));
                    progress = true;
                }
            }
        }
        if progress {
            continue;
        }
        let Some((&first, ())) = ready.iter().next() else {
            // Equal depths never wait for each other; should a group be stuck all the same, it starts apart.
            let Some((g, group)) = gathered.pop_first() else {
                break;
            };
            if let Some(size) = sizes.get_mut(&g) {
                *size -= group.len();
            }
            group
                .iter()
                .for_each(|&k| finish(k, &mut ready, &mut waiting));
            units.push(Unit::Dots(group));
            continue;
        };
        let w = width(first);
        let mut block = Vec::new();
        while let Some(k) = ready
            .keys()
            .copied()
            .find(|&k| is_elementwise(&l.graph.instructions[k].op) && width(k) == w)
        {
            ready.remove(&k);
            finish(k, &mut ready, &mut waiting);
            block.push(k);
        }
        units.push(Unit::Elementwise(block));
    }
    units
}

/// Operands that are read as tiles, looking through what is read in place.
pub(crate) fn tile_operands(l: &Lowering<'_>, k: ValueId, skip: &HashSet<ValueId>) -> Vec<ValueId> {
    let i = &l.graph.instructions[k];
    let mut all = Vec::new();
    for (n, &x) in i.inputs.iter().enumerate() {
        let whole = match (&i.op, l.clusters.roles[k]) {
            (Op::Dot(_), Role::Row(_)) => n == 1,
            (Op::Gather, _) => n == 0,
            (Op::Random(_), _) => true,
            (Op::Broadcast(_), _) => crate::cluster::is_row_invariant_broadcast(l.graph, k),
            _ => false,
        };
        if whole {
            continue;
        }
        if skip.contains(&x) {
            all.extend(tile_operands(l, x, skip));
        } else {
            all.push(x);
        }
    }
    all
}
