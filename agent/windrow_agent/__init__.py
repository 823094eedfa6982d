"""The agent of a GPU host: reads the host, reports it and runs workloads on it. It decides nothing about the market."""

from windrow_agent.app.memory_trim import without

# structlog loads these two wherever it finds them, for coloured consoles and green threads: 4 MiB that no daemon needs.
with without("rich", "greenlet"):
    import structlog as structlog
