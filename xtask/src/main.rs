//! Tasks of this repository that take more than one cargo command.
//!
//! `cargo xtask build --torch DIR` builds the libraries of the Python package: the engine
//! (`libdml_torch`) and one plugin per torch minor (`libtorch_dml_2_11`, ...). `DIR` is the folder
//! of an installed torch, `.../site-packages/torch`. `cargo xtask numerics` measures the math
//! library and writes its tables in docs/reference/numerics.md.

mod compiler;
mod engine;
mod platform;
mod plugin;
mod torch;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};

use crate::compiler::Compiler;
use crate::platform::Platform;
use crate::torch::Torch;

#[derive(Parser)]
#[command(about = "Tasks of torch-dml", version)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build the engine and a plugin for every torch given
    Build(Build),
    /// Print the version of the torch in a folder, major.minor, without starting Python
    TorchVersion {
        /// Folder of an installed torch (.../site-packages/torch) or of a virtual environment
        torch: PathBuf,
    },
    /// Measure the worst error of every function of the math library and write the table
    Numerics {
        /// The file whose tables are replaced
        #[arg(long, default_value = "docs/reference/numerics.md", value_name = "FILE")]
        out: PathBuf,
        /// Inputs per f32 function; f64 takes a thousandth
        #[arg(long, default_value_t = 50_000_000, value_name = "N")]
        samples: u64,
    },
}

#[derive(clap::Args)]
struct Build {
    /// Folder of an installed torch (.../site-packages/torch) or of a virtual environment; once per
    /// torch minor
    #[arg(long = "torch", required = true, num_args = 1.., value_name = "DIR")]
    torches: Vec<PathBuf>,
    /// Where the libraries go
    #[arg(long, default_value = "python/torch_dml/lib", value_name = "DIR")]
    out: PathBuf,
    /// Build for a wheel of this platform, manylinux_2_28_x86_64 or manylinux_2_28_aarch64: from
    /// any folder the same bytes. Needs cargo-zigbuild and GNU's C++ compiler for it
    #[arg(long, value_name = "TAG")]
    platform: Option<String>,
    /// Cargo profile of the engine
    #[arg(long, default_value = "release")]
    profile: String,
    /// Keep debug symbols
    #[arg(long)]
    no_strip: bool,
    /// C++ files compiled at once; the number of processors when left out
    #[arg(long, short, value_name = "N")]
    jobs: Option<usize>,
}

fn main() -> ExitCode {
    match run(&Cli::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Not returned from main, which would print a backtrace: useless to a user without a
            // compiler.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Build(options) => build(options),
        Task::TorchVersion { torch } => {
            let torch = Torch::find(torch)?;
            println!("{}.{}", torch.major, torch.minor);
            Ok(())
        }
        Task::Numerics { out, samples } => numerics(out, *samples),
    }
}

/// Runs dml-kernel's example, which shares the reference functions with the tests.
fn numerics(out: &Path, samples: u64) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = std::process::Command::new(cargo);
    command.args(["run", "--quiet", "--release", "--package", "dml-kernel", "--example", "numerics", "--"]);
    let status = command.arg(out).arg(samples.to_string()).status().context("cannot start cargo")?;
    anyhow::ensure!(status.success(), "the measurement failed");
    Ok(())
}

fn build(options: &Build) -> Result<()> {
    let torches = options.torches.iter().map(|dir| Torch::find(dir)).collect::<Result<Vec<_>>>()?;
    torch::check_distinct(&torches)?;
    let platform = Platform::parse(options.platform.as_deref())?;
    let compiler = Compiler::detect(&platform)?;
    let jobs = options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    std::fs::create_dir_all(&options.out).with_context(|| format!("cannot make {}", options.out.display()))?;

    let strip = (cfg!(unix) && !options.no_strip).then(|| platform.tool("strip"));
    let engine = engine::build(&options.profile, &platform)?;
    let copied = engine::install(&engine, &options.out, strip.as_deref())?;
    println!("{}", copied.display());
    for library in plugin::build(&plugin::Request {
        compiler: &compiler,
        torches: &torches,
        engine: &engine,
        out: &options.out,
        strip: strip.as_deref(),
        jobs,
    })? {
        println!("{}", library.display());
    }
    Ok(())
}
