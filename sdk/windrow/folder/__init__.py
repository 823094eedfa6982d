"""A working folder on its way to a host and back: what is sent, and what may come back where."""
