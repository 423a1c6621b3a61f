//! How a length is taken apart: into passes over memory, and these into butterflies.

use dml_engine::AdapterInfo;
use dml_kernel::DType;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The most numbers that an invocation transforms at a time, but for `MAX_PRIME`.
pub const MAX_RADIX: u32 = 16;

/// The largest prime that is a radix; lengths with larger ones are convolutions, which lose three
/// times the digits.
const MAX_PRIME: u32 = 31;

/// The longest line of one pass.
const MAX_LINE: i64 = 8192;

/// The radices of a pass, first to last.
pub type Radices = SmallVec<[u32; 6]>;

/// One pass over memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The length of its transforms.
    pub length: i64,
    /// What the length is made of.
    pub radices: Radices,
}

/// How a length is transformed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// By passes, the product of whose lengths is the length.
    Passes(Vec<Stages>),
    /// As a convolution of this length.
    Chirp(i64),
}

/// What an adapter allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Numbers that a workgroup can exchange, one part at a time.
    pub points: i64,
    /// Bytes of shared memory.
    pub shared: u32,
    /// Invocations of a workgroup.
    pub invocations: u32,
    /// Neighbouring complex numbers that make 64 bytes, what memory gives at a time.
    pub neighbours: u32,
}

impl Limits {
    /// Of numbers whose parts are of this dtype.
    pub fn of(adapter: &AdapterInfo, part: DType) -> Limits {
        let has = &adapter.capabilities;
        let mut points = MAX_LINE;
        let bytes = part.bytes() as u32;
        while points > 256
            && (padded(points as u32) * bytes > has.max_shared_memory
                || points as u32 / MAX_RADIX > has.max_workgroup_invocations)
        {
            points /= 2;
        }
        Limits {
            points,
            shared: has.max_shared_memory,
            invocations: has.max_workgroup_invocations,
            neighbours: 32 / bytes,
        }
    }

    /// How to transform lines of this length; `None` of one that is too long. Remembered, as it
    /// takes longer to find than a launch.
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
        if !is_smooth(n, i64::from(MAX_PRIME)) {
            return convolution(n).map(Plan::Chirp);
        }
        // One of several passes works beside as many neighbours as make half of what memory gives
        // at a time.
        let most = |passes| if passes == 1 { self.points } else { self.points / i64::from(self.neighbours / 2) };
        let lengths = (1..8).find_map(|passes| split(n, passes, most(passes)))?;
        let stages = lengths.into_iter().map(|length| Stages { length, radices: radices(length) });
        Some(Plan::Passes(stages.collect()))
    }
}

/// Elements of shared memory that hold `points` numbers without bank conflicts.
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

/// The shortest length of few radices that holds a convolution of `n` numbers.
fn convolution(n: i64) -> Option<i64> {
    let least = 2 * n - 1;
    let fit = |odd: i64| {
        let power = (least as u64).div_ceil(odd as u64).next_power_of_two() as i64;
        power * odd
    };
    [1, 3, 5, 9, 15].into_iter().map(fit).min().filter(|&length| length < 1 << 31)
}

/// `passes` factors of `n`, each at most `most`, as equal as can be.
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

/// The radices of a pass of length `n`: as few as can be, then the least sum, the largest first.
fn radices(n: i64) -> Radices {
    fn best(n: u32, most: u32) -> Option<Radices> {
        if n == 1 {
            return Some(Radices::new());
        }
        let cost = |r: &Radices| (r.len(), r.iter().sum::<u32>());
        (2..=most.min(n))
            .filter(|&r| n.is_multiple_of(r) && (r <= MAX_RADIX || (2..r).all(|p| !r.is_multiple_of(p))))
            .filter_map(|r| {
                let mut all = best(n / r, r)?;
                all.insert(0, r);
                Some(all)
            })
            .min_by_key(cost)
    }
    best(n as u32, MAX_PRIME).filter(|all| !all.is_empty()).unwrap_or_else(|| Radices::from_slice(&[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(points: i64) -> Limits {
        Limits { points, shared: 48 << 10, invocations: 1024, neighbours: 8 }
    }

    #[test]
    fn few_radices() {
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
            assert_eq!(radices(n).as_slice(), expected, "{n}");
        }
    }

    #[test]
    fn every_length_has_a_plan() {
        for points in [512, 2048, 8192] {
            let limits = limits(points);
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
