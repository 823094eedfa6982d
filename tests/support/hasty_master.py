"""The shipped Master with less patience: run as `python -m tests.support.hasty_master ARGUMENTS...`.

Only how long it waits is changed, so that a test of hundreds of lost hosts ends within the hour.
"""

import os
from types import ModuleType
from typing import Final

from windrow_master.fleet import flaps, liveness, model
from windrow_master.fleet import service as fleet
from windrow_master.jobs import controller, decide, request
from windrow_master.queue import service as queue
from windrow_proto.units import SECOND

LOST_S: Final = int(os.environ.get("HASTE_LOST_S") or 6)
"""After so many seconds of silence a host is lost: a few where many are killed, more where the others must not be."""
HASTE: Final[tuple[tuple[ModuleType, str, int], ...]] = (
    (fleet, "HEARTBEAT_MIN_NS", SECOND),
    (liveness, "SUSPECT_MIN_NS", 3 * SECOND),
    (liveness, "LOST_MIN_NS", LOST_S * SECOND),
    (liveness, "LOST_INTERVALS", LOST_S),
    (model, "SETTLED_NS", SECOND),
    *((flaps, name, SECOND) for name in ("SETTLED_NS", "MANY_NS", "SETTLED_NS_MAX")),
    # Many hosts are lost here within a minute, and it is not the Master's own fault.
    (liveness, "BREAKER_AGENTS_MIN", 1_000_000),
    (request, "CHECKPOINT_MIN_NS", SECOND // 2),
    (decide, "COLLECT_ENDED_NS", 30 * SECOND),
    (queue, "AGAIN_MAX_NS", 2 * SECOND),
    (controller, "AGAIN_NS", SECOND),
)


def main() -> None:
    """The daemon with its times changed; nobody but the test rents its hosts."""
    for module, name, value in HASTE:
        assert isinstance(getattr(module, name), int), name
        setattr(module, name, value)
    os.environ["WINDROW_PROOFS"] = "off"
    from windrow_master.__main__ import main as run

    run()


if __name__ == "__main__":
    main()
