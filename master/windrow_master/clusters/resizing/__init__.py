"""More or fewer hosts of a cluster that runs."""
