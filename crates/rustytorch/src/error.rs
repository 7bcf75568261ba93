//! One error type for programs that use several of the crates.

/// Shorthand for results of programs written with this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What any of the crates can refuse; each message stands by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A tensor program or its device.
    #[error(transparent)]
    Tensor(#[from] rtx_tensor::Error),
    /// A network, its training, or a checkpoint.
    #[error(transparent)]
    Nn(#[from] rtx_nn::NnError),
    /// A physics-informed problem.
    #[error(transparent)]
    Pinn(#[from] rtx_pinn::PinnError),
    /// Elastography data, an inversion, a phantom or a figure.
    #[error(transparent)]
    Mre(#[from] rtx_mre::MreError),
    /// A file operation of the program itself.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
