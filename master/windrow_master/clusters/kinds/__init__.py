"""Kinds of clusters: what each kind runs on its members."""
