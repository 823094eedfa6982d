"""Compute beyond this market's own hosts: the registry of on-premises, cloud and edge resources."""
