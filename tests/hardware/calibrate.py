"""Measures what a challenge takes on the GPU of this machine, for a row of `verification.times.TIMES`.

    python -m tests.hardware.calibrate OUT.json [--runs 24]

Both ends are the product's own: the Master's conversation asks, the agent's service answers with one prover process a
challenge, and nothing but the network is missing between them. The machine should be idle.
"""

import argparse
import asyncio
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from windrow_agent.challenge.service import ChallengeService
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_master.verification.conversation import Conversation, Outcome
from windrow_master.verification.times import SAMPLES_MIN, STANDARD, UNMEASURED, Work, calibrate
from windrow_proto.challenge import KEY_BYTES
from windrow_proto.clock import SystemClock, SystemRng
from windrow_proto.errors import WindrowError
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.units import MILLISECOND

END_S = 10.0


class Near:
    """A line to the agent's service in this process."""

    def __init__(self, service: ChallengeService) -> None:
        self._asked: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._told: asyncio.Queue[ChannelData | ChannelClose] = asyncio.Queue()
        self._serving = asyncio.get_running_loop().create_task(self._serve(service))

    async def _serve(self, service: ChallengeService) -> None:
        closing = ChannelClose()
        try:
            await service.serve(self._asked.get, self._tell)
        except WindrowError as error:
            closing = ChannelClose(detail=error.detail)
        await self._told.put(closing)

    async def _tell(self, data: bytes) -> None:
        await self._told.put(ChannelData(data))

    async def send(self, data: bytes, stream: int = 0) -> None:
        """Pass on to the service."""
        await self._asked.put(data)

    async def receive(self) -> ChannelData | ChannelClose:
        """Return what the service said next."""
        return await self._told.get()

    async def close(self, closing: ChannelClose) -> None:
        """End the service, and wait until its provers are gone."""
        await self._asked.put(None)
        await asyncio.wait_for(self._serving, END_S)


class Nearby:
    """Opens lines to the service of this process, whatever host is asked for."""

    def __init__(self, service: ChallengeService) -> None:
        self._service = service

    async def open(self, host_id: HostId, opening: ChannelOpen) -> Near:
        """Return a line that is open."""
        return Near(self._service)


async def challenged(gpu_uuid: GpuUuid, memory_bytes: int, work: Work) -> Outcome:
    """One challenge of this card, from the plan to what its memory held."""
    clock = SystemClock()
    conversation = Conversation(
        clock, SystemRng(), os.urandom(KEY_BYTES), work, {gpu_uuid: UNMEASURED}, {gpu_uuid: memory_bytes}
    )
    return await conversation.hold(Nearby(ChallengeService(clock, dict)), HostId("host_here"))


async def measured(gpu_uuid: GpuUuid, memory_bytes: int, runs: int) -> list[dict[str, Any]]:
    """Run challenges; return the duration (in ns) and the verdict of each."""
    found = []
    for number in range(runs):
        outcome = await challenged(gpu_uuid, memory_bytes, STANDARD)
        one = outcome.results[0]
        trial, memory = one.trial, one.memory
        found.append(
            {
                "verdict": trial.phase.value if trial else "none",
                "failure": one.failure or outcome.failure,
                "reasons": [reason.value for reason in trial.reasons] if trial else [],
                "span_ns": trial.span_ns if trial else None,
                "device": one.device,
                "memory": memory.verdict.value if memory else None,
                "filled_bytes": memory.filled_bytes if memory else None,
                "fill_ns": memory.span_ns if memory else None,
            }
        )
        print(number, found[-1], flush=True)
    return found


def main() -> None:
    """Challenge the first GPU of this machine again and again; write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--runs", type=int, default=SAMPLES_MIN + 4)
    arguments = parser.parse_args()
    backend = NvmlBackend()
    if (refused := backend.open()) is not None:
        sys.exit(f"No NVIDIA driver answers here, so there is nothing to measure: {refused.text}")
    inventory = backend.inventory()
    gpu = inventory.gpus[0]
    backend.close()
    found = asyncio.run(measured(gpu.uuid, gpu.memory_bytes or 0, arguments.runs))
    spans = [one["span_ns"] for one in found if one["verdict"] == "passed"]
    source = f"{gpu.name}, driver {inventory.driver_version}"
    row = calibrate(spans, source)
    arguments.out.write_text(json.dumps({"source": source, "work": asdict(STANDARD), "runs": found}, indent=1) + "\n")
    shown = [round(value / MILLISECOND) if value else None for value in (row.p5_ns, row.p50_ns, row.p95_ns)]
    print(f"{source}: {len(spans)} of {len(found)} passed; commitment in ms, p5/p50/p95: {shown}")
    print(row)


if __name__ == "__main__":
    main()
