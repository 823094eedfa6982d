"""The Master as a process: configuration, wiring of its packages, listeners, standby."""
