"""The agent's commands, disks, runtimes and link."""
