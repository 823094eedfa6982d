"""What the agent does with commands, disks, runtimes and the link."""
