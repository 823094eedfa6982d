"""What the agent decides: pure, values in and values out."""
