"""The access relay: carries opaque frames between the agents of a region and the Master. The relay holds no state of
record."""
