"""Measuring hosts: who is due, and the commands that do it."""
