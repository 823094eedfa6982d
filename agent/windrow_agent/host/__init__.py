"""This machine without its GPUs: facts, metrics, benchmarks, and a simulated twin."""
