"""Removes what work has left in the store, in the end."""
