"""Jobs: work that waits for GPUs, is retried, and ends."""
