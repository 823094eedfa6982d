"""Support for several tests, never shipped."""
