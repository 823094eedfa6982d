"""Which cluster has which volume."""
