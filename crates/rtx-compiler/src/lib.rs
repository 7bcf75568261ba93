//! From a recorded graph to a program of fused phases with a memory plan
