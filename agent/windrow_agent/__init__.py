"""The agent: reads one GPU host, reports it and runs containers on it. It decides nothing about the market."""

from windrow_agent.app.memory_trim import without

# structlog loads these two wherever it finds them, for coloured consoles and green threads: 4 MiB that no daemon needs.
with without("rich", "greenlet"):
    import structlog as structlog
