"""Overlay networks of clusters whose members cannot reach each other, and the test of whether they can."""
