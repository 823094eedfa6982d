"""Workloads of this host: the Master's commands, their states, and the channels into them."""
