"""A stand-in for libnvidia-ml.so.1, so that the real nvidia-ml-py runs without a GPU."""
