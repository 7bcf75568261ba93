//! Buffers, the backend trait and the compile cache of RustyTorch++
