"""What this host keeps on its disk: the journal, caches of objects, checkpoints and volumes, free space."""
