"""Alerts: what is wrong is told once to the people whom it concerns, until it is over."""
