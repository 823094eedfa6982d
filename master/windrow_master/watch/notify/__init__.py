"""Channels: mail, webhooks and other services that alerts are delivered to."""
