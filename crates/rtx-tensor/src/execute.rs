//! Evaluation of pending tensors through the device's program cache.

use crate::{Device, Result, Tensor};
use rtx_ir::eval::HostArray;
use rtx_ir::{Graph, GraphInput, Node, Source, Value};
use rtx_runtime::CompileOptions;

/// Evaluates tensors together, sharing the work they have in common. Products of `f32` are as exact as
/// [`Precision::F32`](crate::Precision::F32) says; [`compile_with`](crate::compile_with) can be told otherwise.
///
/// # Errors
/// A mistake on the way to one of them, or the device's refusal.
pub fn eval(tensors: &[&Tensor]) -> Result<()> {
    for t in tensors {
        t.check()?;
    }
    let pending: Vec<&Tensor> = tensors
        .iter()
        .copied()
        .filter(|t| t.node().value().is_none())
        .collect();
    let Some(first) = pending.first() else {
        return Ok(());
    };
    let nodes: Vec<Node> = pending.iter().map(|t| t.node().clone()).collect();
    let graph = Graph::from_nodes(&nodes, true)?;
    let device = first.device();
    let options = CompileOptions::default();
    let program = device.cache().get(device.backend(), &graph, &options)?;
    let inputs = captured(&graph, device)?;
    let inputs: Vec<Value> = inputs.into_iter().flatten().collect();
    if inputs.len() != graph.inputs.len() {
        let message = "a program input was read outside the program".to_string();
        return Err(rtx_ir::Error::Input { slot: 0, message }.into());
    }
    for (node, value) in nodes.iter().zip(program.run(&inputs)?) {
        node.set_value(value);
    }
    Ok(())
}

/// Values of the graph's inputs that the graph itself knows.
pub(crate) fn captured(graph: &Graph, device: &Device) -> Result<Vec<Option<Value>>> {
    let scalars: Vec<HostArray> = graph
        .inputs
        .iter()
        .filter_map(|i| match i.source {
            Source::Scalar(v) => Some(HostArray::new(i.dtype, &[], vec![v])),
            _ => None,
        })
        .collect();
    let mut scalars = device.backend().upload_all(&scalars)?.into_iter();
    let value = |i: &GraphInput| match &i.source {
        Source::Captured(v) => Some(v.clone()),
        Source::Scalar(_) => scalars.next(),
        Source::Slot(_) => None,
    };
    Ok(graph.inputs.iter().map(value).collect())
}

/// Programs compiled by reads on this device so far; for tests that count compilations.
pub fn compilations(device: &Device) -> u64 {
    device.cache().compilations()
}
