"""Runs the `windrow` command as `python -m windrow`."""

from windrow.cli.main import main

main()
