"""The access relay: carries opaque frames between the agents of a region and the Master. It holds no truth."""
