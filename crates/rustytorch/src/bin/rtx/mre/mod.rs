//! `rtx mre`: elastography.

mod demo;
mod info;
mod invert;
mod simulate;
mod truth;

use clap::Subcommand;

use crate::failure::Failure;

/// Elastography commands.
#[derive(Debug, Subcommand)]
pub enum MreCommand {
    /// Simulate a phantom, invert it with the network and with AHI, compare both with the truth.
    Demo(demo::DemoArgs),
    /// List the arrays of a .mat, .npy or .npz file.
    Info(info::InfoArgs),
    /// Invert measured waves to maps of the complex shear modulus.
    Invert(Box<invert::InvertArgs>),
    /// Simulate a 2-D viscoelastic phantom with known modulus.
    Simulate(Box<simulate::SimulateArgs>),
}

/// Runs one of them.
pub fn run(command: MreCommand) -> Result<(), Failure> {
    match command {
        MreCommand::Demo(args) => demo::run(&args),
        MreCommand::Info(args) => info::run(&args),
        MreCommand::Invert(args) => invert::run(&args),
        MreCommand::Simulate(args) => simulate::run(&args),
    }
}
