"""Failover tests: an Access is ended on purpose, to see that its hosts are heard elsewhere."""
