"""The Master's connection to the `windrow up` that started it, over a socket that it inherited.

A question and its answer are one message each, JSON with a number; an answer that was left for a dead Master is passed
over.
"""

import asyncio
import json
import os
import socket
from collections.abc import Mapping
from typing import Any, Final

from windrow_proto.errors import Conflict, Unavailable
from windrow_proto.ids import AccessId
from windrow_proto.master_process import SUPERVISOR_MESSAGE_MAX

ANSWER_S: Final = 5.0
"""For an answer of a process on the same machine that waits for nothing."""
UNHEARD: Final = "`windrow up` does not answer."


class SupervisorLine:
    """A Supervisor that is another process."""

    def __init__(self, fd: int) -> None:
        """fd: the inherited socket. Raises OSError where it is none."""
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

    async def simulated(self) -> tuple[int, int]:
        """How many simulated hosts there are to be, and may be at most. Raises Unavailable when it does not answer."""
        answer = await self._ask({"ask": "simulated"})
        return int(answer["wanted"]), int(answer["at_most"])

    async def simulate(self, count: int) -> None:
        """Have so many simulated hosts. Raises Unavailable when it does not answer."""
        await self._ask({"simulate": count})

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
                        answer: dict[str, Any] = json.loads(await loop.sock_recv(self._socket, SUPERVISOR_MESSAGE_MAX))
                        if answer.get("number") == self._number:
                            return answer
            except (OSError, ValueError, TimeoutError) as error:
                raise Unavailable(UNHEARD) from error
