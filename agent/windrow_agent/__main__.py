"""`windrow-agent`, and `python -m windrow_agent`: loads the Agent and runs it."""

from windrow_proto.endure import loading


def main() -> None:
    """The daemon's entry point."""
    with loading():
        from windrow_agent.main import main as run
    run()


if __name__ == "__main__":
    main()
