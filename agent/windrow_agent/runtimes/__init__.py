"""How a workload is run on this host: one port, an adapter for each kind."""
