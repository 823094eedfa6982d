"""Functions on clusters, from the renter's side: what to send, the line to the worker, and what a renter imports."""
