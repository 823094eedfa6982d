"""The agent as a process: command line, configuration, wiring, doctor, logs, metrics and memory."""
