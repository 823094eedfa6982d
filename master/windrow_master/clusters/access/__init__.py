"""Reaches into a workload: its log, one more command, files in and out."""
