"""Who holds which slot: granted by compare-and-set, under tokens that only grow."""
