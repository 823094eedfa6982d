"""Holds a prepared member of a cluster back until it may start, and checks that this host has the member's address and
ports."""

import asyncio
import errno
import socket
from collections.abc import Callable

from windrow_agent.host.psutil_reader import addresses
from windrow_agent.runtimes.port import Progress
from windrow_proto.errors import Conflict, InvalidInput, WindrowError
from windrow_proto.ids import WorkloadId
from windrow_proto.model import WorkloadSpec


class MemberBarrier:
    """Wakes whoever waits for a workload to come further."""

    def __init__(self) -> None:
        self._events: dict[WorkloadId, asyncio.Event] = {}

    async def through(self, workload_id: WorkloadId, step: Callable[[], str], progress: Progress) -> None:
        """Return once `step` names nothing more to wait for, asked again after each `wake`."""
        event = self._events.setdefault(workload_id, asyncio.Event())
        while name := step():
            progress(name, 0)
            event.clear()
            await event.wait()

    def wake(self, workload_id: WorkloadId) -> None:
        """Notes that the workload has changed."""
        if workload_id in self._events:
            self._events[workload_id].set()

    def forget(self, workload_id: WorkloadId) -> None:
        """Forgets a workload that is gone for good."""
        self._events.pop(workload_id, None)


def member_refusal(spec: WorkloadSpec) -> WindrowError | None:
    """Why this host cannot be met at the address and the ports that the other members are told; None: it can."""
    if not spec.address or spec.peers:
        return None  # in a private network all ports are its own
    if spec.address not in addresses():
        return InvalidInput(f"This host has no address {spec.address}.", subject=spec.workload_id)
    for port in spec.listens:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((spec.address, port))
            except OSError as error:
                why = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
                return Conflict(f"Port {port} of {spec.address} {why}.", subject=spec.workload_id)
    return None
