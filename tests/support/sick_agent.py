"""The shipped agent with simulated hosts whose cards break: run as `python -m tests.support.sick_agent ARGUMENTS...`.

After a while the first host loses one card, another has uncorrectable memory errors, and a third one is too hot.
"""

import sys
import threading
from typing import Any, Final

from windrow_agent.app import main
from windrow_agent.host.simulated import SimulatedHost

AFTER_S: Final = 20.0
"""From the start of this process: the host has joined and has its tier by then."""
LOST, CORRUPT, HOT = 2, 5, 6
OFF_THE_BUS, ECC_DOUBLE_BIT = 79, 48


class SickHost(SimulatedHost):
    """A simulated host; the first of a process falls ill."""

    def __init__(self, seed: int, index: int, *more: Any) -> None:
        super().__init__(seed, index, *more)
        if index == 0:
            timer = threading.Timer(AFTER_S, self._fall_ill)
            timer.daemon = True
            timer.start()

    def _fall_ill(self) -> None:
        self.gpus.xid(LOST, OFF_THE_BUS)
        self.gpus.lose(LOST)
        self.gpus.xid(CORRUPT, ECC_DOUBLE_BIT)
        self.gpus.corrupt(CORRUPT)
        self.gpus.heat(HOT)


if __name__ == "__main__":
    vars(main)["SimulatedHost"] = SickHost
    sys.exit(main.main())
