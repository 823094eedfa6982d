"""Hosts as rows: joining, inventory, conditions, tiers, what people decide about them."""
