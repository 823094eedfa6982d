"""Jobs: a command with requirements that gets a cluster, runs, leaves its log and files with the Master and lets go."""
