"""A stand-in for libcuda.so.1, so that what asks CUDA runs without a GPU."""
