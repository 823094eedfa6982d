"""Volumes: named folders that outlive clusters and jobs, and go wherever the next one runs."""
