"""Connections to and between workloads: tunnels, public ports, overlay networks, and reading and writing a workload."""
