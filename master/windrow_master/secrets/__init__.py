"""Keeps named secrets of projects: work names them, and the host that runs the work is given their values."""
