"""Artefacts and checkpoints: objects in a folder or an S3-compatible store, and the rows that say whose they are."""
