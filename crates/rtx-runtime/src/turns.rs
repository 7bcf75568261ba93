//! The arrays that take turns in a run of many steps.

use crate::Result;
use rtx_ir::Value;
use std::sync::Arc;

/// The outputs of a run, and a second array for each output that the next step reads: a step reads one set and writes
/// the other, so a run holds the state twice and never more.
///
/// The second set is the caller's own arrays where nobody else holds them (they are donated, and no longer needed
/// once the first step has read them).
pub struct Turns {
    first: Vec<Value>,
    second: Vec<Option<Value>>,
}

impl Turns {
    /// Arrays for `steps` steps with so many outputs. `spare` are those that an earlier run left; `fits` tells whether
    /// an array can hold an output, `fresh` makes one.
    ///
    /// # Errors
    /// Those of `fresh`.
    pub fn new(
        inputs: &mut [Value],
        carry: &[(usize, usize)],
        outputs: usize,
        steps: usize,
        spare: &mut Vec<Value>,
        fits: impl Fn(&Value, usize) -> bool,
        fresh: impl Fn(usize) -> Result<Value>,
    ) -> Result<Self> {
        let mut take = |o: usize| match spare.iter().position(|v| fits(v, o)) {
            Some(k) => Ok(spare.swap_remove(k)),
            None => fresh(o),
        };
        let carried = |o: usize| carry.iter().any(|(_, x)| *x == o);
        let first = (0..outputs).map(|o| if carried(o) { take(o) } else { fresh(o) });
        let first = first.collect::<Result<Vec<_>>>()?;
        let mut second = vec![None; outputs];
        for &(i, o) in carry {
            let donated = Arc::get_mut(&mut inputs[i]).is_some() && fits(&inputs[i], o);
            if donated {
                second[o] = Some(inputs[i].clone());
            } else if steps > 1 && second[o].is_none() {
                second[o] = Some(take(o)?);
            }
        }
        Ok(Turns { first, second })
    }

    /// The array of output `o` that steps number 0, 2, .. (`set` 0) or 1, 3, .. (`set` 1) write.
    pub fn array(&self, set: usize, o: usize) -> &Value {
        match &self.second[o] {
            Some(second) if set % 2 == 1 => second,
            _ => &self.first[o],
        }
    }

    /// What `steps` steps have written last, and the arrays that are free again.
    pub fn finish(self, steps: usize) -> (Vec<Value>, Vec<Value>) {
        let odd = steps % 2 == 1;
        let mut free = Vec::new();
        let pairs = self.first.into_iter().zip(self.second);
        let last = pairs.map(|(first, second)| match second {
            None => first,
            Some(second) => {
                let (last, other) = if odd {
                    (first, second)
                } else {
                    (second, first)
                };
                free.push(other);
                last
            }
        });
        let last = last.collect();
        (last, free)
    }
}
