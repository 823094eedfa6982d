"""Whether the hosts of a cluster see each other."""
