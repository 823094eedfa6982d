"""Clusters: work on leased slots, from the request to its end."""
