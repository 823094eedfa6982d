"""`windrow-agent`, and `python -m windrow_agent`: loads the agent and runs it."""

import sys

from windrow_proto.endure import loading


def main() -> None:
    """The daemon's entry point; exits with its status."""
    with loading():
        from windrow_agent.app.main import main as run
    sys.exit(run())


if __name__ == "__main__":
    main()
