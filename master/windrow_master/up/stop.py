"""What `windrow up` does for its Masters when asked: names the Accesses that it keeps, and kills one, as a test.

Each Master gets one end of a socket pair at its start, and nobody else can have it: no path, no port, no secret. A
question and its answer are one message each, JSON with a number; an answer that a dead Master left is passed over.
"""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

from windrow_master.up import supervisor
from windrow_master.up.supervisor import Daemon
from windrow_proto.errors import Conflict, Unavailable
from windrow_proto.ids import AccessId

MESSAGE_MAX: Final = 64 * 1024
ANSWER_S: Final = 5.0
"""For an answer of a process on the same machine that waits for nothing."""
UNHEARD: Final = "`windrow up` does not answer."


class Desk:
    """The end of `windrow up`."""

    def __init__(self, accesses: Callable[[], Mapping[str, Daemon]], say: Callable[[str], None]) -> None:
        """accesses: the Accesses that are kept, by their ids. say: for the person who looks on."""
        self._accesses, self._say = accesses, say
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
            asked = json.loads(mine.recv(MESSAGE_MAX))
            mine.send(json.dumps({"number": asked["number"], **self._answer(asked)}).encode())
        except (OSError, ValueError, KeyError, TypeError) as error:
            self._say(f"A Master asked what was not understood: {error!r}")

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        kept = self._accesses()
        if asked.get("ask") == "accesses":
            return {"accesses": {access_id: daemon.name for access_id, daemon in kept.items()}}
        daemon = kept.get(str(asked.get("kill")))
        if daemon is None:
            return {"refused": "`windrow up` did not start this Access, so it cannot stop it."}
        pid = supervisor.kill(daemon)
        if pid is None:
            return {"refused": f"{daemon.name} does not run at this moment."}
        self._say(f"{daemon.name} (pid {pid}) is killed, as a test that was asked for")
        return {"killed": pid}


class Line:
    """The Master's end: the `Supervisor` of trials."""

    def __init__(self, fd: int) -> None:
        """fd: what the supervisor gave. Raises OSError where it is no such socket."""
        self._socket = socket.socket(fileno=fd)
        self._socket.set_inheritable(False)
        self._socket.setblocking(False)
        self._turn = asyncio.Lock()
        self._number = os.getpid() << 32

    async def accesses(self) -> Mapping[str, str]:
        """The names of the Accesses that it keeps, by their ids. Raises Unavailable when it does not answer."""
        answer: dict[str, str] = (await self._ask({"ask": "accesses"}))["accesses"]
        return answer

    async def kill(self, access_id: AccessId) -> int:
        """SIGKILL one, with all of its processes. Raises Conflict with why not, Unavailable when nobody answers."""
        answer = await self._ask({"kill": access_id})
        if "refused" in answer:
            raise Conflict(answer["refused"], subject=access_id)
        return int(answer["killed"])

    def close(self) -> None:
        """Ask nothing any more."""
        self._socket.close()

    async def _ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        async with self._turn:
            self._number += 1
            try:
                async with asyncio.timeout(ANSWER_S):
                    await loop.sock_sendall(self._socket, json.dumps({"number": self._number, **question}).encode())
                    while True:
                        answer: dict[str, Any] = json.loads(await loop.sock_recv(self._socket, MESSAGE_MAX))
                        if answer.get("number") == self._number:
                            return answer
            except (OSError, ValueError, TimeoutError) as error:
                raise Unavailable(UNHEARD) from error
