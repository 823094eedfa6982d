"""GPUs behind one port: NVML, simulated, none; each vendor library has one door here."""
