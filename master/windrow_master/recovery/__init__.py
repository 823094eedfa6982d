"""Backup, restore and check: keeps a market alive beyond the disk it lies on."""
