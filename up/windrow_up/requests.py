"""Answers the Masters that `windrow up` has started: names the Accesses that it keeps, kills one as a test, and sets
how many simulated hosts there are.

Each Master inherits one end of a socket pair, and nobody else can have it: no path, no port, no secret. A question and
its answer are one message each, JSON with a number, of at most SUPERVISOR_MESSAGE_MAX bytes.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from windrow_proto.master_process import SUPERVISOR_MESSAGE_MAX
from windrow_up import supervisor
from windrow_up.supervisor import Daemon

SIMULATED_MAX: Final = 2_000


@dataclass(slots=True)
class Simulated:
    """How many simulated hosts there are to be; whoever sets it does not wait until they are there."""

    wanted: int = 0


class MasterRequests:
    """The supervisor's end of the lines to its Masters."""

    def __init__(
        self, accesses: Callable[[], Mapping[str, Daemon]], simulated: Simulated, say: Callable[[str], None]
    ) -> None:
        """accesses: the Accesses that are kept, by their ids. say: for the person who looks on."""
        self._accesses, self._simulated, self._say = accesses, simulated, say
        self._open: list[socket.socket] = []

    def open(self) -> int:
        """The file that a Master is to be given: the same for all of its lives. Call on the loop."""
        mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        mine.setblocking(False)
        self._open += [mine, theirs]
        asyncio.get_running_loop().add_reader(mine.fileno(), self._hear, mine)
        return theirs.fileno()

    def close(self) -> None:
        """Hear nobody any more."""
        for one in self._open:
            asyncio.get_running_loop().remove_reader(one.fileno())
            one.close()
        self._open.clear()

    def _hear(self, mine: socket.socket) -> None:
        try:
            asked = json.loads(mine.recv(SUPERVISOR_MESSAGE_MAX))
            mine.send(json.dumps({"number": asked["number"], **self._answer(asked)}).encode())
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._say(f"A Master asked what was not understood: {error!r}")

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if asked.get("ask") == "simulated":
            return {"wanted": self._simulated.wanted, "at_most": SIMULATED_MAX}
        if "simulate" in asked:
            self._simulated.wanted = min(max(int(asked["simulate"]), 0), SIMULATED_MAX)
            return {"wanted": self._simulated.wanted}
        kept = self._accesses()
        if asked.get("ask") == "accesses":
            return {"accesses": {access_id: daemon.name for access_id, daemon in kept.items()}}
        daemon = kept.get(str(asked.get("kill")))
        if daemon is None:
            return {"refused": "`windrow up` did not start this relay, so it cannot stop it."}
        pid = supervisor.kill(daemon)
        if pid is None:
            return {"refused": f"{daemon.name} does not run at this moment."}
        self._say(f"{daemon.name} (pid {pid}) is killed, as a test that was asked for")
        return {"killed": pid}
