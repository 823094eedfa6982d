"""The twin of a service that runs code: the cloud in memory, whose machines are helpers that run here."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import anyio

from tests.support.memory_backend import MemoryBackend, MemoryCloud
from windrow_master.hybrid.backends.port import Machine, MachineOffer, MachineState, Order, Wanted
from windrow_master.hybrid.runs.modal import HELPER
from windrow_master.hybrid.runs.port import Stream, start_of
from windrow_proto.ports import Clock

LOOK_S: Final = 0.02


@dataclass
class Helper:
    """One helper and what it prints."""

    process: subprocess.Popen[bytes]
    printed: dict[Stream, Path]


class Helpers:
    """All helpers of a service, which outlive any Master."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.all = folder, dict[str, Helper]()

    def begin(self, run_id: str, orders: str) -> None:
        """Start one, once for a run."""
        if run_id in self.all:
            return
        own = Path(tempfile.mkdtemp(dir=self.folder))
        printed = {Stream.LOG: own / "log", Stream.WORDS: own / "words"}
        with printed[Stream.LOG].open("wb") as log, printed[Stream.WORDS].open("wb") as words:
            process = subprocess.Popen(
                (sys.executable, "-c", HELPER),
                env={"PATH": os.environ["PATH"], "TMPDIR": str(own), "WINDROW_ORDERS": orders},
                cwd=own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=words,
                start_new_session=True,
            )
        self.all[run_id] = Helper(process, printed)

    def kill(self, run_id: str) -> None:
        """Take one back, with all that it started."""
        found = self.all.get(run_id)
        if found is None:
            return
        below = subprocess.run(("ps", "-o", "pid=", "--ppid", str(found.process.pid)), capture_output=True, text=True)
        for pid in (found.process.pid, *map(int, below.stdout.split())):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        found.process.wait(10)

    def close(self) -> None:
        for run_id in self.all:
            self.kill(run_id)


class MemoryRuns(MemoryBackend):
    """See `Runs`."""

    def __init__(self, cloud: MemoryCloud, clock: Clock, helpers: Helpers) -> None:
        super().__init__(cloud, clock)
        self._helpers = helpers

    async def offers(self, wanted: Wanted) -> Sequence[MachineOffer]:
        return [replace(one, is_run=True) for one in await super().offers(wanted)]

    async def provision(self, order: Order) -> Machine:
        made = await super().provision(order)
        self._helpers.begin(made.machine_id, start_of(order.user_data).orders)
        return made

    async def describe(self, market_id: str) -> Sequence[Machine]:
        found = await super().describe(market_id)
        over = {run_id for run_id, one in self._helpers.all.items() if one.process.poll() is not None}
        return [
            replace(one, state=MachineState.TERMINATED, said="ended") if one.machine_id in over else one
            for one in found
        ]

    async def terminate(self, machine_id: str) -> None:
        await super().terminate(machine_id)
        self._helpers.kill(machine_id)

    async def follow(self, run_id: str, stream: Stream) -> AsyncGenerator[bytes]:
        helper = self._helpers.all[run_id]
        with helper.printed[stream].open("rb") as file:
            while True:
                is_over = helper.process.poll() is not None
                if data := file.read():
                    yield data
                elif is_over:
                    return
                else:
                    await anyio.sleep(LOOK_S)
