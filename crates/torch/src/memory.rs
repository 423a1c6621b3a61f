//! Device memory.

use crate::abi::{DmlMemoryStats, DmlPoolStats, DmlStat};
use crate::device::{open, publish};
use crate::error::{Failure, guard, guard_value};
use dml_engine::{PoolStats, SegmentInfo, Stat};
use serde_json::{Map, Value, json};
use std::ffi::{c_char, c_void};

/// Allocates memory of a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_allocate(device: i32, bytes: u64, address: *mut u64) -> i32 {
    guard(|| {
        let got = open(device)?.allocate(bytes)?;
        // SAFETY: the contract's places.
        unsafe { address.write(got) };
        Ok(())
    })
}

/// Frees memory. Work that was enqueued before may still use it.
#[unsafe(no_mangle)]
pub extern "C" fn dml_free(device: i32, address: u64) {
    guard(|| {
        open(device)?.free(address);
        Ok(())
    });
}

/// Copies host memory to the device; the source may change when this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_upload(device: i32, address: u64, source: *const c_void, bytes: u64) -> i32 {
    guard(|| {
        // SAFETY: the contract's arrays.
        let source = unsafe { crate::convert::slice(source.cast::<u8>(), bytes as usize) };
        Ok(open(device)?.upload(address, source)?)
    })
}

/// Copies device memory to the host, after the work so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_download(device: i32, address: u64, target: *mut c_void, bytes: u64) -> i32 {
    guard(|| {
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the contract's arrays: `bytes` bytes that nobody else uses during the call. What
        // they hold before, if anything, is never read.
        let target = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), bytes as usize) };
        Ok(open(device)?.download(address, target)?)
    })
}

fn stat(s: Stat) -> DmlStat {
    DmlStat { current: s.current as i64, peak: s.peak as i64, allocated: s.allocated as i64, freed: s.freed as i64 }
}

/// The figures of a pool.
pub fn pool(p: &PoolStats) -> DmlPoolStats {
    DmlPoolStats {
        allocation: stat(p.allocations),
        segment: stat(p.segments),
        allocated_bytes: stat(p.allocated_bytes),
        reserved_bytes: stat(p.reserved_bytes),
        requested_bytes: stat(p.requested_bytes),
        inactive_split: p.inactive_split_blocks as i64,
        inactive_split_bytes: p.inactive_split_bytes as i64,
    }
}

fn stats(device: i32) -> Result<DmlMemoryStats, Failure> {
    let s = open(device)?.memory_stats();
    Ok(DmlMemoryStats {
        all: pool(&s.all),
        small: pool(&s.small),
        large: pool(&s.large),
        num_alloc_retries: s.alloc_retries as i64,
        num_ooms: s.ooms as i64,
    })
}

/// The allocator's figures.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_memory_stats(device: i32, out: *mut DmlMemoryStats) -> i32 {
    guard(|| {
        // SAFETY: the contract's places.
        unsafe { out.write(stats(device)?) };
        Ok(())
    })
}

/// The same figures as JSON, with `torch.accelerator.memory_stats`' keys; null on error.
#[unsafe(no_mangle)]
pub extern "C" fn dml_memory_stats_json(device: i32) -> *const c_char {
    guard_value(std::ptr::null(), || Ok(publish(&to_json(&stats(device)?))))
}

fn to_json(s: &DmlMemoryStats) -> Value {
    let mut out = Map::new();
    let mut put = |key: &str, pool: &str, s: &DmlStat| {
        let times = [("current", s.current), ("peak", s.peak), ("allocated", s.allocated), ("freed", s.freed)];
        for (time, figure) in times {
            out.insert(format!("{key}.{pool}.{time}"), figure.into());
        }
    };
    for (name, pool) in [("all", &s.all), ("small_pool", &s.small), ("large_pool", &s.large)] {
        for (key, stat) in [
            ("allocation", &pool.allocation),
            ("active", &pool.allocation),
            ("segment", &pool.segment),
            ("allocated_bytes", &pool.allocated_bytes),
            ("active_bytes", &pool.allocated_bytes),
            ("reserved_bytes", &pool.reserved_bytes),
            ("requested_bytes", &pool.requested_bytes),
        ] {
            put(key, name, stat);
        }
        put("inactive_split", name, &DmlStat { current: pool.inactive_split, ..DmlStat::default() });
        put("inactive_split_bytes", name, &DmlStat { current: pool.inactive_split_bytes, ..DmlStat::default() });
    }
    out.insert("num_alloc_retries".into(), s.num_alloc_retries.into());
    out.insert("num_ooms".into(), s.num_ooms.into());
    Value::Object(out)
}

/// The segments and blocks as JSON: a list of segments, with `torch.cuda.memory_snapshot`'s keys;
/// null on error.
#[unsafe(no_mangle)]
pub extern "C" fn dml_memory_snapshot_json(device: i32) -> *const c_char {
    guard_value(std::ptr::null(), || {
        let segments = open(device)?.memory_snapshot();
        let in_use = |s: &SegmentInfo| s.blocks.iter().filter(|b| b.requested > 0).map(|b| b.bytes).sum::<u64>();
        let list = segments.iter().map(|s| {
            json!({
                "device": device,
                "address": s.address,
                "total_size": s.bytes,
                "allocated_size": in_use(s),
                "active_size": in_use(s),
                "requested_size": s.blocks.iter().map(|b| b.requested).sum::<u64>(),
                "stream": 0,
                "segment_type": if s.small { "small" } else { "large" },
                "blocks": s.blocks.iter().map(|b| json!({
                    "address": b.address,
                    "size": b.bytes,
                    "requested_size": b.requested,
                    "state": if b.requested > 0 { "active_allocated" } else { "inactive" },
                })).collect::<Value>(),
            })
        });
        Ok(publish(&list.collect::<Value>()))
    })
}

/// Bytes of the block in use that contains an address; 0 if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_block_bytes(device: i32, address: u64, bytes: *mut u64) -> i32 {
    guard(|| {
        let block = open(device)?.block(address);
        // SAFETY: the contract's places.
        unsafe { bytes.write(block.map_or(0, |block| block.range.bytes())) };
        Ok(())
    })
}

/// Free bytes, and the device's total.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dml_memory_info(device: i32, free: *mut u64, total: *mut u64) -> i32 {
    guard(|| {
        let (f, t) = open(device)?.memory_info();
        // SAFETY: the contract's places.
        unsafe {
            free.write(f);
            total.write(t);
        }
        Ok(())
    })
}

/// Returns unused memory to the driver. A device that was not used has none, and is not opened.
#[unsafe(no_mangle)]
pub extern "C" fn dml_empty_cache(device: i32) -> i32 {
    guard(|| match dml_engine::opened(device as usize) {
        Some(device) => Ok(device.empty_cache()?),
        None => Ok(()),
    })
}

/// Sets each peak to the current figure.
#[unsafe(no_mangle)]
pub extern "C" fn dml_reset_peak_stats(device: i32) -> i32 {
    guard(|| {
        open(device)?.reset_peak_stats();
        Ok(())
    })
}

/// Sets the totals to zero.
#[unsafe(no_mangle)]
pub extern "C" fn dml_reset_accumulated_stats(device: i32) -> i32 {
    guard(|| {
        open(device)?.reset_accumulated_stats();
        Ok(())
    })
}

/// Limits this process to a part of the device's memory.
#[unsafe(no_mangle)]
pub extern "C" fn dml_set_memory_fraction(device: i32, fraction: f64) -> i32 {
    guard(|| {
        open(device)?.set_memory_fraction(fraction);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_pytorchs_keys() {
        let mut s = DmlMemoryStats::default();
        s.small.allocated_bytes = DmlStat { current: 5, peak: 9, allocated: 12, freed: 7 };
        let json = to_json(&s);
        assert_eq!(json["allocated_bytes.small_pool.peak"], 9);
        assert_eq!(json["active_bytes.small_pool.current"], 5);
        assert_eq!(json["segment.all.current"], 0);
        assert_eq!(json["num_ooms"], 0);
    }
}
