//! Operation set, lazy graph, derivative transforms and rewrites of RustyTorch++
