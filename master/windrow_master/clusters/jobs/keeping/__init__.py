"""What the Master keeps for jobs: the folder that was sent, the log and the changed files of each attempt."""
