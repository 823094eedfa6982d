"""Reads the fleet and its prices into what placement decides over."""
