"""Claims: what hosts say of their GPUs, held against itself, the model table and what other hosts say."""
