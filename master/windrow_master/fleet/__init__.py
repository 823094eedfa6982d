"""Hosts as the Master sees them: state machines, inventory, tiers, slots, commands, reconcile."""
