"""Which hosts are challenged, and what is kept of it."""
