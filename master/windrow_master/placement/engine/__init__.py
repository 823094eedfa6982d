"""The placement engine: a fleet in memory that is changed by deltas and asked for places. Pure."""
