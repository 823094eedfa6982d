"""The decisions of the agent: pure, values in and values out."""
