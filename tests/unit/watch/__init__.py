"""Tests of alerts, channels and findings."""
