"""Backends of GPUs behind one port: NVML, the kernel's files, simulated, none; each vendor library has one adapter
here."""
