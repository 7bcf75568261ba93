//! CPU backend of RustyTorch++: row programs in cache-sized blocks
