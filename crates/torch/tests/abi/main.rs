//! The interface is declared once, in this crate's sources: `plugin/engine.h` and
//! `python/torch_dml/abi.py` are written from them. `WRITE=1 cargo test -p dml-torch --test abi`
//! (`make abi`) writes both; without it a file that would be another one fails the test.

#![allow(clippy::expect_used, clippy::unwrap_used)]

mod c;
mod python;
mod read;

use dml_kernel::DType;
use dml_torch::abi::{
    DTYPE_NONE, DmlActivity, DmlHost, DmlLaunch, DmlMemoryStats, DmlPayload, DmlPoolStats, DmlRange, DmlStat,
    DmlTensor, DmlValue,
};
use read::{Definition, Interface, Named};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the written files say of themselves.
pub const WRITTEN: &str = "Written by `make abi` from the sources of crates/torch.";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The interface of the sources, with the dtypes that the kernel language has.
fn interface() -> Interface {
    let mut interface = Interface::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let dtypes = (0..DTYPE_NONE).filter_map(DType::from_code).map(|dtype| {
        let name = format!("{dtype:?}").to_uppercase();
        Named { docs: Vec::new(), name, is: dtype as u64 }
    });
    let dtypes = Definition::Enum {
        docs: vec!["The codes of dtypes.".to_owned()],
        name: "DType".to_owned(),
        prefix: String::new(),
        values: dtypes.collect(),
    };
    let at = |definition: &Definition| matches!(definition, Definition::Constant { name, .. } if name == "DTYPE_NONE");
    let at = interface.definitions.iter().position(at).expect("a code of unknown dtypes");
    interface.definitions.insert(at, dtypes);
    interface
}

/// Writes a file if the environment says so, else compares it.
fn is_up_to_date(file: &str, text: &str) {
    let path = root().join(file);
    if std::env::var_os("WRITE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    assert!(found == text, "{file} is not what the sources declare: run `make abi`");
}

#[test]
fn the_header_is_up_to_date() {
    is_up_to_date("plugin/engine.h", &c::header(&interface()));
}

#[test]
fn the_python_module_is_up_to_date() {
    is_up_to_date("python/torch_dml/abi.py", &python::module(&interface()));
}

/// A C compiler takes the header, and finds structs of the sizes that they have in Rust.
#[test]
fn a_c_compiler_reads_the_header() {
    let mut program = "#include \"engine.h\"\n".to_owned();
    macro_rules! check {
        ($($struct:ident),*) => {$(
            let (name, bytes) = (stringify!($struct), size_of::<$struct>());
            writeln!(program, "_Static_assert(sizeof({name}) == {bytes}, \"{name} has {bytes} bytes in Rust\");").unwrap();
        )*};
    }
    check!(
        DmlTensor,
        DmlPayload,
        DmlValue,
        DmlHost,
        DmlRange,
        DmlLaunch,
        DmlActivity,
        DmlStat,
        DmlPoolStats,
        DmlMemoryStats
    );
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("abi.c");
    std::fs::write(&file, program).unwrap();
    if cfg!(windows) {
        return; // No compiler is at hand there: scripts/windows.sh compiles the file.
    }
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args(["-std=c11", "-fsyntax-only", "-Werror", "-I"])
        .arg(root().join("plugin"))
        .arg(&file)
        .output()
        .expect("a C compiler, as Rust's linker needs one");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
