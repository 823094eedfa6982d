"""Files that the agent keeps on this host: the journal, caches of objects, checkpoints and volumes, free space."""
