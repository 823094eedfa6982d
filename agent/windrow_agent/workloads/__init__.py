"""Workloads of this host: commands of the Master, their lives, and the channels into them."""
