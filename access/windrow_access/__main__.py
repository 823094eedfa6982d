"""`windrow-access`, and `python -m windrow_access`: loads the Access and runs it."""

from windrow_proto.endure import loading


def main() -> None:
    """The daemon's entry point."""
    with loading():
        from windrow_access.main import main as run
    run()


if __name__ == "__main__":
    main()
