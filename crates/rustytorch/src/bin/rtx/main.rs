//! The command `rtx`.
//!
//! Exit codes: 0 for success; 1 for a failure that other input would not cure; 2 for bad input, with
//! a message that says what to change; 130 after Ctrl-C.

mod bench;
mod devices;
mod failure;
mod interrupt;
mod mre;
mod output;
mod table;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

use failure::Failure;

/// Machine learning for physics: stiffness maps from magnetic resonance elastography, phantoms,
/// benchmarks.
#[derive(Debug, Parser)]
#[command(
    name = "rtx",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        rtx mre demo                      simulate, invert and compare, in a few minutes\n  \
        rtx mre info wave.npz             what a file holds\n  \
        rtx mre invert wave.npz --help    all options of an inversion"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the devices that this build can use.
    Devices(devices::DevicesArgs),
    /// Magnetic resonance elastography.
    #[command(subcommand)]
    Mre(mre::MreCommand),
    /// Measure the speed of this machine.
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Devices(args) => devices::run(&args),
        Command::Mre(command) => mre::run(command),
        Command::Bench(command) => bench::run(command),
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::note(&format!("{failure}"));
            failure.exit_code()
        }
    }
}
