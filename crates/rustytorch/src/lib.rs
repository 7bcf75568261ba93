//! RustyTorch++: a machine-learning framework for physics, and the rtx command
