"""`windrow-master`, and `python -m windrow_master`: loads the Master and runs it."""

from windrow_proto.endure import loading


def main() -> None:
    """The daemon's entry point."""
    with loading():
        from windrow_master.app.main import main as run
    run()


if __name__ == "__main__":
    main()
