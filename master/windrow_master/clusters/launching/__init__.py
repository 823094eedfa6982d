"""Starts members of clusters on the hosts that placement chose."""
