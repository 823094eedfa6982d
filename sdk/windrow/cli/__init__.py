"""The `windrow` command: noun, then verb; data on standard output, everything else on standard error."""
