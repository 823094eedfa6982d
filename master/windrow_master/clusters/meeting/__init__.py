"""Members beside others: where they run, and how they meet."""
