"""What the compilers of GPUs that are not at hand make of the engine's kernels."""
