"""Templates: requests for clusters that are kept by name, to be asked for again."""
