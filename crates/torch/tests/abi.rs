//! Holds `plugin/engine.h` and the Rust side together: a C compiler checks the header against what Rust says of every struct,
//! constant and function.

#![allow(clippy::expect_used, clippy::unwrap_used)]

use dml_kernel::DType;
use dml_torch::abi::{
    ABI_VERSION, DmlActivity, DmlHost, DmlMemoryStats, DmlPoolStats, DmlStat, DmlTensor, DmlValue, Payload, Status,
    flags, place, precision, tag, work,
};
use std::ffi::{c_char, c_void};
use std::fmt::Write as _;
use std::mem::{align_of, offset_of, size_of};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU32;

/// A Rust type as C writes it.
trait CType {
    fn c() -> String;
}

macro_rules! named {
    ($($rust:ty = $c:literal),* $(,)?) => {$(
        impl CType for $rust {
            fn c() -> String {
                $c.to_owned()
            }
        }
    )*};
}

named! {
    () = "void",
    i32 = "int32_t",
    i64 = "int64_t",
    u8 = "uint8_t",
    u32 = "uint32_t",
    u64 = "uint64_t",
    usize = "size_t",
    f64 = "double",
    c_char = "char",
    c_void = "void",
    AtomicU32 = "uint32_t",
    DmlValue = "DmlValue",
    DmlHost = "DmlHost",
    DmlActivity = "DmlActivity",
    DmlMemoryStats = "DmlMemoryStats",
    DmlPoolStats = "DmlPoolStats",
    // What waits ask.
    Option<extern "C" fn() -> i32> = "int32_t (*)(void)",
    // What a profile is handed over through.
    unsafe extern "C" fn(*mut c_void, *const DmlActivity) = "void (*)(void *, const DmlActivity *)",
}

impl<T: CType> CType for *const T {
    fn c() -> String {
        format!("const {} *", T::c())
    }
}

impl<T: CType> CType for *mut T {
    fn c() -> String {
        format!("{} *", T::c())
    }
}

/// A function as C declares it.
trait Prototype {
    fn prototype(name: &str) -> String;
}

macro_rules! prototypes {
    ($(($($argument:ident)*))*) => {$(
        impl<R: CType, $($argument: CType),*> Prototype for unsafe extern "C" fn($($argument),*) -> R {
            fn prototype(name: &str) -> String {
                let arguments: Vec<String> = vec![$($argument::c()),*];
                let arguments = if arguments.is_empty() { "void".to_owned() } else { arguments.join(", ") };
                format!("{} {name}({arguments});", R::c())
            }
        }
    )*};
}

prototypes! { () (A) (A B) (A B C) (A B C D) (A B C D E) (A B C D E F) (A B C D E F G) }

fn prototype_of<F: Prototype>(_: F, name: &str) -> String {
    F::prototype(name)
}

/// Appends assertions on a struct: its size, its alignment, and every field's place.
macro_rules! layout {
    ($to:ident, $struct:ident { $($field:ident $(as $c:literal)?),* $(,)? }) => {
        let name = stringify!($struct);
        check($to, &format!("sizeof({name})"), size_of::<$struct>());
        check($to, &format!("_Alignof({name})"), align_of::<$struct>());
        $(
            let field = [stringify!($field), $($c)?].into_iter().last().unwrap();
            check($to, &format!("offsetof({name}, {field})"), offset_of!($struct, $field));
        )*
        // Named all: a pattern that leaves one out does not compile.
        let _ = |all: $struct| { let $struct { $($field: _),* } = all; };
    };
}

fn check(to: &mut String, c: &str, rust: usize) {
    writeln!(to, "_Static_assert({c} == {rust}, \"{c} is {rust} in Rust\");").unwrap();
}

fn structs(to: &mut String) {
    layout!(to, DmlTensor {
        handle as "impl", data, sizes, strides, storage, storage_bytes, dim, dtype, place, device, flags,
    });
    layout!(to, DmlValue { tag, len, u });
    check(to, "sizeof(((DmlValue *)0)->u)", size_of::<Payload>());
    layout!(to, DmlHost {
        this as "self", empty, resize, view, warn, matmul_precision, product_dtype, default_dtype, deterministic
    });
    layout!(
        to,
        DmlActivity {
            name,
            op,
            correlation,
            enqueued,
            ran,
            bytes_read,
            bytes_written,
            groups,
            group_size,
            launches,
            device,
            work,
        }
    );
    layout!(to, DmlStat { current, peak, allocated, freed });
    layout!(
        to,
        DmlPoolStats {
            allocation,
            segment,
            allocated_bytes,
            reserved_bytes,
            requested_bytes,
            inactive_split,
            inactive_split_bytes,
        }
    );
    layout!(to, DmlMemoryStats { all, small, large, num_alloc_retries, num_ooms });
}

fn constants(to: &mut String) {
    check(to, "DML_ABI_VERSION", ABI_VERSION as usize);
    let statuses = [
        ("OK", Status::Ok),
        ("RUNTIME_ERROR", Status::Runtime),
        ("INDEX_ERROR", Status::Index),
        ("TYPE_ERROR", Status::Type),
        ("VALUE_ERROR", Status::Value),
        ("NOT_IMPLEMENTED", Status::NotImplemented),
        ("OUT_OF_MEMORY", Status::OutOfMemory),
        ("DEVICE_LOST", Status::DeviceLost),
        ("FALLBACK", Status::Fallback),
    ];
    for (name, status) in statuses {
        check(to, &format!("DML_{name}"), status as usize);
    }
    let codes = [
        ("NONE", tag::NONE),
        ("TAG_BOOL", tag::BOOL),
        ("TAG_INT", tag::INT),
        ("TAG_DOUBLE", tag::DOUBLE),
        ("TAG_COMPLEX", tag::COMPLEX),
        ("TAG_TENSOR", tag::TENSOR),
        ("TAG_INTS", tag::INTS),
        ("TAG_DOUBLES", tag::DOUBLES),
        ("TAG_BOOLS", tag::BOOLS),
        ("TAG_TENSORS", tag::TENSORS),
        ("TAG_STRING", tag::STRING),
        ("TAG_SCALARS", tag::SCALARS),
        ("TAG_GENERATOR", tag::GENERATOR),
        ("TAG_DEVICE", tag::DEVICE),
        ("PLACE_CPU", place::CPU),
        ("PLACE_DML", place::DML),
        ("PLACE_OTHER", place::OTHER),
        ("TENSOR_WRAPPED_NUMBER", flags::WRAPPED_NUMBER),
        ("TENSOR_CONJ", flags::CONJ),
        ("TENSOR_NEG", flags::NEG),
        ("PRECISION_HIGHEST", precision::HIGHEST),
        ("PRECISION_HIGH", precision::HIGH),
        ("PRECISION_MEDIUM", precision::MEDIUM),
        ("KERNEL", work::KERNEL),
        ("UPLOAD", work::UPLOAD),
        ("DOWNLOAD", work::DOWNLOAD),
        ("REPLAY", work::REPLAY),
    ];
    for (name, code) in codes {
        check(to, &format!("DML_{name}"), usize::from(code));
    }
    for code in 0..=u8::MAX {
        if let Some(dtype) = DType::from_code(code) {
            check(to, &format!("DML_{}", format!("{dtype:?}").to_uppercase()), usize::from(code));
        }
    }
}

/// The prototypes of all functions, by name.
fn functions() -> Vec<(&'static str, String)> {
    macro_rules! list {
        ($($module:ident::$function:ident($($argument:tt)*);)*) => {
            vec![$((
                stringify!($function),
                prototype_of(
                    dml_torch::$module::$function as unsafe extern "C" fn($($argument),*) -> _,
                    stringify!($function),
                ),
            )),*]
        };
    }
    list! {
        device::dml_device_count(_);
        device::dml_device_info_json(_);
        device::dml_unsupported_adapters_json();
        device::dml_device_dtypes(_ _);
        device::dml_self_test(_);
        device::dml_synchronize(_);
        device::dml_flush(_);
        device::dml_idle(_ _);
        device::dml_forked();
        device::dml_simulate_loss(_);
        device::dml_set_interrupt_check(_);
        device::dml_stand_in_for_cuda();
        device::dml_set_torch_minor(_);
        device::dml_shutdown();
        device::dml_queue_stats_json(_);
        device::dml_kernel_stats_json();
        device::dml_validation_json();
        error::dml_last_error();
        error::dml_set_error(_);
        error::dml_abi_version();
        error::dml_version();
        event::dml_event_record(_ _ _);
        event::dml_event_query(_ _);
        event::dml_event_wait(_);
        event::dml_event_elapsed(_ _ _);
        event::dml_event_free(_);
        generator::dml_generator_new(_ _);
        generator::dml_generator_free(_);
        generator::dml_generator_seed(_ _ _);
        generator::dml_generator_seed_all(_);
        generator::dml_generator_get(_ _ _ _);
        generator::dml_generator_set(_ _ _ _);
        graph::dml_graph_pool_new(_ _);
        graph::dml_graph_pool_free(_);
        graph::dml_graph_begin(_ _ _);
        graph::dml_graph_end(_ _);
        graph::dml_graph_discard(_);
        graph::dml_graph_replay(_);
        graph::dml_graph_stats_json(_);
        graph::dml_graph_free(_);
        graph::dml_is_capturing(_ _);
        measure::dml_measuring();
        measure::dml_measure_enter();
        measure::dml_measure_leave(_);
        measure::dml_measure_begin();
        measure::dml_measure_end_json();
        memory::dml_allocate(_ _ _);
        memory::dml_free(_ _);
        memory::dml_upload(_ _ _ _);
        memory::dml_download(_ _ _ _);
        memory::dml_memory_stats(_ _);
        memory::dml_memory_stats_json(_);
        memory::dml_memory_snapshot_json(_);
        memory::dml_block_bytes(_ _ _);
        memory::dml_memory_info(_ _ _);
        memory::dml_empty_cache(_);
        memory::dml_reset_peak_stats(_);
        memory::dml_reset_accumulated_stats(_);
        memory::dml_set_memory_fraction(_ _);
        operators::dml_fallback_is_error();
        operators::dml_operator_count();
        operators::dml_operator_name(_);
        operators::dml_operator_schema(_);
        operators::dml_call(_ _ _ _ _ _ _);
        pinned::dml_host_allocate(_ _ _);
        pinned::dml_host_free(_);
        pinned::dml_host_is_pinned(_);
        pinned::dml_host_empty_cache();
        pinned::dml_host_stats(_);
        pinned::dml_host_reset_stats(_);
        profile::dml_profile_start();
        profile::dml_profile_stop(_ _);
        profile::dml_profile_correlate(_);
    }
}

fn header() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin/engine.h");
    std::fs::read_to_string(path).expect("plugin/engine.h")
}

#[test]
fn the_header_declares_every_function_and_no_other() {
    let header = header();
    let mut declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with("//") && !line.starts_with(' ') && line.contains("dml_"))
        .filter_map(|line| line[line.find("dml_")?..].split_once('(').map(|(name, _)| name))
        .collect();
    declared.sort_unstable();
    let mut ours: Vec<&str> = functions().into_iter().map(|(name, _)| name).collect();
    ours.sort_unstable();
    assert_eq!(declared, ours);
}

#[test]
fn a_c_compiler_finds_the_same_layouts_constants_and_prototypes() {
    let mut program = "#include <stddef.h>\n#include \"engine.h\"\n".to_owned();
    structs(&mut program);
    constants(&mut program);
    for (_, prototype) in functions() {
        writeln!(program, "{prototype}").unwrap();
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi.c");
    std::fs::write(&file, program).unwrap();
    if cfg!(windows) {
        return; // No compiler is at hand there: scripts/windows.sh compiles the file.
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(["-std=c11", "-fsyntax-only", "-Werror", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin"))
        .arg(&file)
        .output()
        .expect("a C compiler, as Rust's linker needs one");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
