"""`windrow-access`, and `python -m windrow_access`: loads the Access and runs it."""

import os
from typing import Final

from windrow_proto.endure import loading

GRPC_EXPERIMENTS: Final = "-event_engine_listener,-event_engine_client"
"""gRPC's own threads between its sockets and this process are left out: whoever waits for messages reads the sockets
himself. At 2,000 messages a second a message took 361 us of the Access' processor with them and 249 without, a cold
connection 3.4 ms and 3.05 (gRPC 1.85.1). An operator's own setting goes before."""


def main() -> None:
    """The daemon's entry point."""
    os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)  # read once, when gRPC is used first
    with loading():
        from windrow_access.main import main as run
    run()


if __name__ == "__main__":
    main()
