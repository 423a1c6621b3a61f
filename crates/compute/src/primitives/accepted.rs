//! The choice among kernels that compute the same, on a device whose driver refuses some.
//!
//! A driver may refuse a kernel, or compile it only without optimisation
//! ([`Device::verdict`](dml_engine::Device::verdict)). A computation that has several kernels to
//! choose from then takes the next one. Where nothing was refused, this costs one load.

use crate::context::{Context, Environment, Phase, Policy};
use crate::error::Result;
use crate::view::{Dims, Location, View};
use dml_engine::{AddressRange, Device, KernelRef, Verdict};
use dml_kernel::DType;
use std::cell::Cell;

impl Context<'_> {
    /// The worst verdict on the kernels that `work` launches, without launching them; waits for
    /// their compilation. [`Verdict::Optimised`] on a device whose driver has refused nothing.
    ///
    /// # Errors
    /// Errors of `work`.
    pub fn verdict(&self, work: impl FnOnce(&Context) -> Result<()>) -> Result<Verdict> {
        if self.needs_no_kernel() || !self.device.has_refusals() {
            return Ok(Verdict::Optimised);
        }
        let probe = Probe { environment: self.environment, worst: Cell::new(Verdict::Optimised) };
        work(&Context { environment: &probe, phase: Phase::Probe, ..*self })?;
        Ok(probe.worst.get())
    }

    /// Runs `work` unless the driver made less of its kernels than `least`. Returns whether it ran.
    ///
    /// # Errors
    /// Errors of `work`.
    pub fn run_if_accepted(&self, least: Verdict, work: impl Fn(&Context) -> Result<()>) -> Result<bool> {
        let accepted = self.verdict(&work)? <= least;
        if accepted {
            work(self)?;
        }
        Ok(accepted)
    }

    /// The first of several choices whose kernels are compiled as usual; `next` gives the one after
    /// a choice, and `work` launches a choice's kernels. If there is none, the first one whose
    /// kernels are compiled at all, or else the first.
    ///
    /// # Errors
    /// Errors of `work`.
    pub fn accepted<T: Copy>(
        &self,
        first: T,
        next: impl Fn(T) -> Option<T>,
        work: impl Fn(&Context, T) -> Result<()>,
    ) -> Result<T> {
        let mut best = (Verdict::Refused, first);
        let mut choice = Some(first);
        while let Some(this) = choice {
            let verdict = self.verdict(|cx| work(cx, this))?;
            if verdict < best.0 {
                best = (verdict, this);
            }
            if verdict == Verdict::Optimised {
                break;
            }
            choice = next(this);
        }
        Ok(best.1)
    }

    /// Runs the [accepted](Self::accepted) choice.
    ///
    /// # Errors
    /// Errors of `work`.
    pub fn run_accepted<T: Copy>(
        &self,
        first: T,
        next: impl Fn(T) -> Option<T>,
        work: impl Fn(&Context, T) -> Result<()>,
    ) -> Result<()> {
        work(self, self.accepted(first, next, &work)?)
    }
}

/// The environment of work that is not launched.
struct Probe<'a> {
    environment: &'a dyn Environment,
    worst: Cell<Verdict>,
}

impl Environment for Probe<'_> {
    /// A view of memory that nothing accesses, aligned as all allocations are.
    fn allocate(&self, device: u8, dtype: DType, sizes: &[i64], strides: &[i64]) -> Result<View> {
        const NOWHERE: u64 = 1 << 40;
        let mut view = View {
            handle: 0,
            data: NOWHERE,
            dtype,
            location: Location::Device(device),
            sizes: Dims::from_slice(sizes),
            strides: Dims::from_slice(strides),
            storage: AddressRange::new(NOWHERE, 0),
            weak: false,
            negative: false,
            conjugate: false,
        };
        view.storage = view.range();
        Ok(view)
    }

    fn policy(&self) -> &dyn Policy {
        self.environment.policy()
    }

    fn probe(&self, device: &Device, kernel: &KernelRef, _: &[AddressRange]) -> Result<()> {
        self.worst.set(self.worst.get().max(device.verdict(kernel)?));
        Ok(())
    }
}
