"""Watches the market: alerts, and the channels by which people hear of them."""
