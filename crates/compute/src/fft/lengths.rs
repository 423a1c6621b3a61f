//! The factorisation of a length into passes over memory, and of these into butterflies.

use dml_engine::AdapterInfo;
use dml_kernel::DType;
use smallvec::{SmallVec, smallvec};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// Maximum radix, the numbers that an invocation transforms at a time, except for larger primes.
pub const MAX_RADIX: u32 = 16;

/// Maximum length of one pass.
const MAX_LINE: i64 = 8192;

/// The radices of a pass, in order.
pub type Radices = SmallVec<[u32; 6]>;

/// One pass over memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    /// Length of the pass's transforms.
    pub length: i64,
    /// The radices whose product is the length.
    pub radices: Radices,
}

/// How a transform of some length is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// By passes whose lengths multiply to the length.
    Passes(Vec<Stages>),
    /// By a convolution of this length.
    Chirp(i64),
}

/// The limits of the adapter and of its driver.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum radix: [`MAX_RADIX`], or less where a driver refuses larger kernels.
    pub radix: u32,
    /// Numbers that a workgroup can exchange, real and imaginary parts one after the other.
    pub points: i64,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Maximum invocations of a workgroup.
    pub invocations: u32,
    /// Complex numbers in 64 bytes, the size of a memory transaction.
    pub neighbours: u32,
}

impl Limits {
    /// Limits for complex numbers with parts of this dtype.
    pub fn of(adapter: &AdapterInfo, real_dtype: DType) -> Limits {
        let has = &adapter.capabilities;
        let mut points = MAX_LINE;
        let bytes = real_dtype.bytes() as u32;
        while points > 256
            && (padded(points as u32) * bytes > has.max_shared_memory
                || points as u32 / MAX_RADIX > has.max_workgroup_invocations)
        {
            points /= 2;
        }
        Limits {
            radix: MAX_RADIX,
            points,
            shared: has.max_shared_memory,
            invocations: has.max_workgroup_invocations,
            neighbours: 32 / bytes,
        }
    }

    /// The limits with which kernels are the next smaller ones: shorter butterflies, and fewer
    /// numbers and invocations in a workgroup.
    pub fn smaller(self) -> Option<Limits> {
        let Limits { radix, points, invocations, .. } = self;
        let smaller = Limits {
            radix: radix / 2,
            points: (points / 4).max(256),
            invocations: invocations.min(16 * radix),
            ..self
        };
        (radix > 4).then_some(smaller)
    }

    /// The largest prime that is a radix. Lengths with larger prime factors are computed as
    /// convolutions, which lose three times as many digits.
    fn prime(&self) -> u32 {
        match self.radix {
            MAX_RADIX => 31,
            8 => 7,
            _ => 5,
        }
    }

    /// The plan for lines of this length; `None` if it is too long. Cached, since finding it takes
    /// longer than a launch.
    pub fn plan(&self, n: i64) -> Option<Rc<Plan>> {
        type Plans = HashMap<(Limits, i64), Option<Rc<Plan>>>;
        thread_local! {
            static PLANS: RefCell<Plans> = RefCell::default();
        }
        PLANS.with_borrow_mut(|plans| plans.entry((*self, n)).or_insert_with(|| self.find(n).map(Rc::new)).clone())
    }

    fn find(&self, n: i64) -> Option<Plan> {
        if n >= 1 << 31 {
            return None;
        }
        if !is_smooth(n, i64::from(self.prime())) {
            return convolution(n).map(Plan::Chirp);
        }
        // With several passes, a workgroup transforms as many neighbouring lines as fill half a
        // memory transaction.
        let most = |passes| if passes == 1 { self.points } else { self.points / i64::from(self.neighbours / 2) };
        let lengths = (1..8).find_map(|passes| split(n, passes, most(passes)))?;
        let stages = lengths.into_iter().map(|length| Stages { length, radices: self.radices(length) });
        Some(Plan::Passes(stages.collect()))
    }

    /// The radices of a pass of length `n`: as few as possible, then with the least sum, the
    /// largest first.
    fn radices(&self, n: i64) -> Radices {
        self.best(n as u32, self.prime().max(self.radix)).filter(|all| !all.is_empty()).unwrap_or_else(|| smallvec![1])
    }

    fn best(&self, n: u32, most: u32) -> Option<Radices> {
        if n == 1 {
            return Some(Radices::new());
        }
        let cost = |r: &Radices| (r.len(), r.iter().sum::<u32>());
        (2..=most.min(n))
            .filter(|&r| n.is_multiple_of(r) && (r <= self.radix || (2..r).all(|p| !r.is_multiple_of(p))))
            .filter_map(|r| {
                let mut all = self.best(n / r, r)?;
                all.insert(0, r);
                Some(all)
            })
            .min_by_key(cost)
    }
}

/// Elements of shared memory that hold `points` numbers, padded to avoid bank conflicts.
pub fn padded(points: u32) -> u32 {
    points + points / 32
}

fn is_smooth(mut n: i64, most: i64) -> bool {
    for p in 2..=most {
        while n % p == 0 && n > 1 {
            n /= p;
        }
    }
    n <= 1
}

/// The shortest length with small radices that is enough for a convolution for `n` numbers.
fn convolution(n: i64) -> Option<i64> {
    let least = 2 * n - 1;
    let fit = |odd: i64| {
        let power = (least as u64).div_ceil(odd as u64).next_power_of_two() as i64;
        power * odd
    };
    [1, 3, 5, 9, 15].into_iter().map(fit).min().filter(|&length| length < 1 << 31)
}

/// Factors `n` into `passes` lengths of at most `most`, as equal as possible.
fn split(n: i64, passes: u32, most: i64) -> Option<SmallVec<[i64; 4]>> {
    if passes == 1 {
        return (n <= most).then(|| SmallVec::from_slice(&[n]));
    }
    let wanted = (n as f64).powf(1.0 / f64::from(passes));
    let mut divisors: Vec<i64> = (2..=most).filter(|d| n % d == 0).collect();
    let distance = |d: i64| (d as f64 / wanted).ln().abs();
    divisors.sort_by(|&a, &b| distance(a).total_cmp(&distance(b)));
    divisors.into_iter().find_map(|d| {
        let mut all = split(n / d, passes - 1, most)?;
        all.insert(0, d);
        Some(all)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(points: i64) -> Limits {
        Limits { radix: MAX_RADIX, points, shared: 48 << 10, invocations: 1024, neighbours: 8 }
    }

    #[test]
    fn lengths_have_few_passes() {
        for (n, expected) in [
            (1, &[1][..]),
            (2, &[2]),
            (13, &[13]),
            (30, &[6, 5]),
            (62, &[31, 2]),
            (16, &[16]),
            (60, &[10, 6]),
            (64, &[8, 8]),
            (1000, &[10, 10, 10]),
            (1024, &[16, 8, 8]),
            (4096, &[16, 16, 16]),
            (8192, &[16, 8, 8, 8]),
        ] {
            assert_eq!(limits(8192).radices(n).as_slice(), expected, "{n}");
        }
    }

    #[test]
    fn smaller_kernels_have_smaller_radices() {
        let all: Vec<Limits> = std::iter::successors(Some(limits(8192)), |limits| limits.smaller()).collect();
        let bounds = |limits: &Limits| [limits.radix, limits.points as u32, limits.invocations];
        assert_eq!(all.iter().map(bounds).collect::<Vec<_>>(), [[16, 8192, 1024], [8, 2048, 256], [4, 512, 128]]);
        let radices = |n| all.iter().map(|limits| limits.radices(n).to_vec()).collect::<Vec<_>>();
        assert_eq!(radices(256), [vec![16, 16], vec![8, 8, 4], vec![4; 4]]);
        assert_eq!(radices(60), [vec![10, 6], vec![5, 4, 3], vec![5, 4, 3]]);
    }

    #[test]
    fn every_length_has_a_plan() {
        let all = |points| std::iter::successors(Some(limits(points)), |limits| limits.smaller());
        for limits in [512, 2048, 8192].into_iter().flat_map(all) {
            let points = limits.points;
            for n in (1..5000).chain([5000, 1 << 16, 3 << 20, 1 << 24, 1 << 30, 10007, (1 << 29) - 3, 44100 * 60]) {
                match limits.find(n) {
                    Some(Plan::Passes(passes)) => {
                        assert_eq!(passes.iter().map(|p| p.length).product::<i64>(), n);
                        assert!(passes.len() == 1 || passes.iter().all(|p| p.length <= points / 4));
                        for p in &passes {
                            assert_eq!(p.radices.iter().map(|&r| i64::from(r)).product::<i64>(), p.length);
                        }
                    }
                    Some(Plan::Chirp(length)) => {
                        assert!(length >= 2 * n - 1 && matches!(limits.find(length), Some(Plan::Passes(_))));
                    }
                    None => panic!("{n} has no plan"),
                }
            }
        }
    }

    #[test]
    fn passes_are_few() {
        let passes = |n| match limits(8192).find(n) {
            Some(Plan::Passes(passes)) => passes.len(),
            _ => 0,
        };
        assert_eq!([1 << 13, 1 << 14, 1 << 22, 1 << 24].map(passes), [1, 2, 2, 3]);
    }
}
