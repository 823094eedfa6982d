"""One test rental, from asking for it to its receipt."""
