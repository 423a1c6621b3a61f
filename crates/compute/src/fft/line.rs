//! A line in a kernel: the butterflies of an invocation, and the exchange of their numbers through
//! shared memory between stages.

use crate::fft::shape::Shape;
use dml_kernel::math::complex::Complex;
use dml_kernel::{Builder, Shared, Value};
use std::cell::Cell;

/// The line of an invocation. A line of `length` numbers has `length / radix` butterflies in a
/// stage of a radix; its lanes take them in turns.
pub struct Line<'b> {
    /// The kernel.
    pub b: &'b Builder,
    /// The division of the workgroup.
    pub shape: Shape,
    /// Numbers of a line.
    pub length: u32,
    /// Index of the invocation in its line.
    pub lane: Value<'b>,
    /// Index of the line in its workgroup.
    pub line: Value<'b>,
    /// Positions are computed anew for each use, so that none takes a register between uses.
    pub recomputes: bool,
    /// How often that was done.
    pub uses: Cell<u32>,
}

impl<'b> Line<'b> {
    /// Number of butterflies of a line in a stage of this radix.
    pub fn count(&self, radix: u32) -> u32 {
        self.length / radix
    }

    /// The invocation's butterflies in a stage, and whether each may be out of range.
    pub fn butterflies(&self, radix: u32) -> Vec<(Value<'b>, bool)> {
        let (count, lanes, lane) = (self.count(radix), self.shape.lanes, self.lane());
        (0..count.div_ceil(lanes)).map(|turn| (lane + turn * lanes, (turn + 1) * lanes > count)).collect()
    }

    /// The index of the invocation in its line, where positions are recomputed plus another zero
    /// each time: compilers would find positions again that they have computed before.
    fn lane(&self) -> Value<'b> {
        if !self.recomputes {
            return self.lane;
        }
        self.uses.set(self.uses.get() + 1);
        // No axis has 2^31 workgroups.
        self.lane + (self.b.group_id(0) >> 31) * self.uses.get()
    }

    /// Runs `then` if the butterfly is in range.
    pub fn where_real(&self, radix: u32, (butterfly, ragged): (Value<'b>, bool), then: impl FnOnce()) {
        if ragged { self.b.if_(butterfly.lt(self.count(radix)), then) } else { then() }
    }

    /// Positions in shared memory of `count` numbers of the line, from number `start` on with
    /// stride `step`.
    fn slots(&self, start: Value<'b>, step: u32, count: u32) -> Vec<Value<'b>> {
        let Shape { lines, across, .. } = self.shape;
        let (first, step) =
            if across { (start * lines + self.line, step * lines) } else { (self.line * self.length + start, step) };
        let padded = |plain: Value<'b>| plain + (plain >> 5);
        if step.is_multiple_of(32) {
            let first = padded(first);
            return (0..count).map(|k| first + k * (step + step / 32)).collect();
        }
        (0..count).map(|k| padded(first + k * step)).collect()
    }

    /// Exchanges the results of a stage for the inputs of the next stage's butterflies. `done` is
    /// the product of the radices of earlier stages.
    pub fn exchange(
        &self,
        shared: &[Shared<'b>],
        numbers: &mut Vec<Vec<Complex<'b>>>,
        [radix, next]: [u32; 2],
        done: u32,
        first: bool,
    ) {
        let b = self.b;
        let from: Vec<Vec<Value>> = self
            .butterflies(radix)
            .iter()
            .map(|&(butterfly, _)| {
                let inner = butterfly % done;
                let start = (butterfly - inner) * radix + inner;
                self.slots(start, done, radix)
            })
            .collect();
        let count = self.count(next);
        let to: Vec<Vec<Value>> = self
            .butterflies(next)
            .iter()
            .map(|&(butterfly, ragged)| {
                let start = if ragged { butterfly.min(count - 1) } else { butterfly };
                self.slots(start, count, next)
            })
            .collect();
        let parts = |z: &Complex<'b>| [z.re, z.im];
        let write = |part: usize, shared: Shared<'b>| {
            for ((&butterfly, slots), numbers) in self.butterflies(radix).iter().zip(&from).zip(numbers.iter()) {
                self.where_real(radix, butterfly, || {
                    for (&slot, z) in slots.iter().zip(numbers) {
                        shared.store(slot, parts(z)[part]);
                    }
                });
            }
        };
        let read = |shared: Shared<'b>| -> Vec<Vec<Value<'b>>> {
            to.iter().map(|slots| slots.iter().map(|&slot| shared.load(slot)).collect()).collect()
        };
        if !first {
            b.barrier();
        }
        let [re, im] = if let &[re, im] = shared {
            write(0, re);
            write(1, im);
            b.barrier();
            [read(re), read(im)]
        } else {
            write(0, shared[0]);
            b.barrier();
            let re = read(shared[0]);
            b.barrier();
            write(1, shared[0]);
            b.barrier();
            [re, read(shared[0])]
        };
        let pairs = |(re, im): (Vec<Value<'b>>, Vec<Value<'b>>)| {
            re.into_iter().zip(im).map(|(re, im)| Complex::new(re, im)).collect()
        };
        *numbers = re.into_iter().zip(im).map(pairs).collect();
    }
}
