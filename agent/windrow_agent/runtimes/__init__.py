"""Runtimes of workloads on this host: one port, and an adapter for each kind."""
