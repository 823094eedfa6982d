"""Samples, events, conditions and inventory that a host sends without being asked."""
