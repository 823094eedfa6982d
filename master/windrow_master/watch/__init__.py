"""Alerts: raises them from events and measurements, follows their life, and brings them to people."""
