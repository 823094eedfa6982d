"""The agent: reads one GPU host, reports it and runs containers on it. It decides nothing about the market."""
