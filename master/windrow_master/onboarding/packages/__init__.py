"""The agent with a Python of its own, for machines that have none: an archive, one file, a Debian package."""
