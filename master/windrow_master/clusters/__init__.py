"""Clusters: what runs on leased slots, from asking to gone."""
