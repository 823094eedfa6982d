"""One call over all hosts of a cluster: sends each process its part, follows all of them, and ends them together."""

import asyncio
import pickle
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from windrow.errors import FunctionError, WindrowClientError
from windrow.remote.pickles import NOTHING, PROTOCOL, Reader
from windrow.remote.session import Asked, Ended, Session
from windrow.telling import tell
from windrow.worker import engines

CANCEL_S: Final = 10.0
"""For the other processes to end, once one has failed or the function has returned."""
SECRET_BYTES: Final = 16
Json = dict[str, Any]


@dataclass(slots=True)
class Together:
    """The calls that make one. sessions: with each host, by rank; asked: of rank 0.

    kind: as of `distribute`; size: processes of each host; cpus: that an engine has on each; turn: held meanwhile,
    since two such calls would want the same GPUs.
    """

    sessions: Sequence[Session]
    asked: Asked
    kind: str
    size: int
    cpus: int
    turn: asyncio.Lock
    _sent: list[tuple[Session, Asked]] = field(default_factory=list)
    _is_cancelled: bool = False

    async def call(self) -> Ended:
        """Run all of it; returns how rank 0 ended, or the first process that failed. Raises FunctionError."""
        try:
            async with self.turn:
                if self._is_cancelled:
                    return Ended({"status": "cancelled"}, bytearray())
                self._sent = self._parts(await self._port())
                return await self._followed()
        finally:
            if not self.asked.begun.done():
                self.asked.begun.set_result(None)

    async def cancel(self, _run: str = "") -> None:
        """Interrupt all of it."""
        self._is_cancelled = True
        sent = [one.cancel(asked.record["run"]) for one, asked in self._sent if asked.is_sent]
        await asyncio.gather(*sent, return_exceptions=True)

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _port(self) -> int:
        """A port of rank 0, where the others come."""
        ended = await self.sessions[0].call(self._of_library("free_port", ()))
        found = Reader(NOTHING, None, False).load(ended.data) if ended.record.get("status") == "returned" else None
        if not isinstance(found, int):
            raise FunctionError(f"The first host has no port for the others: {ended.record.get('message')}")
        return found

    def _parts(self, port: int) -> list[tuple[Session, Asked]]:
        shared: Json = {"kind": self.kind, "port": port, "local_size": self.size, "cpus": self.cpus}
        if self.kind in engines.ENGINES:
            part = {**shared, "local_rank": 0, "secret": secrets.token_hex(SECRET_BYTES)}
            self.asked.record["part"] = part
            return [(one, self._of_library("follow", (part,)) if rank else self.asked)
                    for rank, one in enumerate(self.sessions)]  # fmt: skip
        places = [(one, local) for one in self.sessions for local in range(self.size)]
        self.asked.record["part"] = {**shared, "local_rank": 0}
        return [
            (one, self._again(rank, {**shared, "local_rank": local}) if rank else self.asked)
            for rank, (one, local) in enumerate(places)
        ]

    def _again(self, rank: int, part: Json) -> Asked:
        """The same for another process, whose lines say whose they are."""
        on_output, mark = self.asked.on_output, f"[rank {rank}] ".encode()

        def marked(stream: int, data: bytes) -> None:
            on_output(stream, b"".join(mark + line for line in data.splitlines(keepends=True)))

        record = {**self.asked.record, "run": secrets.token_hex(16), "begun": False, "part": part}
        return Asked(record, self.asked.body, self.asked.tree, marked)

    def _of_library(self, name: str, args: tuple[Any, ...]) -> Asked:
        """A call of a function of engines.py, beside the same code and in the same environment."""
        own = {"module": engines.__name__, "name": name, "is_main": False, "file": "", "timeout_s": None, "part": None}
        record = {**self.asked.record, **own, "run": secrets.token_hex(16), "begun": False}
        return Asked(record, pickle.dumps((args, {}), PROTOCOL), self.asked.tree, lambda _stream, _data: None)

    async def _followed(self) -> Ended:
        """Until all have ended, or one has failed; of an engine the function's end is the end of all."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_end_of(one, asked)) for one, asked in self._sent]
            try:
                last = (await self._last(tasks)).result()
            finally:
                await self._end(
                    [(task, *sent) for task, sent in zip(tasks, self._sent, strict=True) if not task.done()]
                )
        if isinstance(last, WindrowClientError):
            raise last
        return last

    async def _last(self, tasks: "list[asyncio.Task[_End]]") -> "asyncio.Task[_End]":
        """The process that says how all of it ended."""
        left = set(tasks)
        while left:
            ended, left = await asyncio.wait(left, return_when=asyncio.FIRST_COMPLETED)
            for rank, task in enumerate(tasks):
                if task not in ended or not (why := _why(task.result())):
                    continue
                if rank and self.kind in engines.ENGINES:  # it does without; if it does not, rank 0 says so
                    tell(f"windrow: the host of rank {rank} has left {self.kind}: {why.splitlines()[-1]}")
                    continue
                if len(tasks) > 1 and self.kind not in engines.ENGINES:
                    tell(f"windrow: rank {rank} of {len(tasks)} failed; the others are cancelled")
                return task
            if self.kind in engines.ENGINES and tasks[0].done():
                break
        return tasks[0]

    @staticmethod
    async def _end(left: "list[tuple[asyncio.Task[_End], Session, Asked]]") -> None:
        """Interrupt these, and wait for them."""
        for task, _, asked in left:
            if not asked.is_sent:
                task.cancel()
        sent = [session.cancel(asked.record["run"]) for _, session, asked in left if asked.is_sent]
        await asyncio.gather(*sent, return_exceptions=True)
        if left:
            _, late = await asyncio.wait([task for task, _, _ in left], timeout=CANCEL_S)
            for task in late:
                task.cancel()


_End = Ended | WindrowClientError


async def _end_of(session: Session, asked: Asked) -> _End:
    try:
        return await session.call(asked)
    except WindrowClientError as error:
        return error


def _why(end: _End) -> str:
    """Returns why it failed; empty where it did not."""
    if isinstance(end, WindrowClientError):
        return str(end)
    status = str(end.record.get("status"))
    return "" if status == "returned" else str(end.record.get("message") or status)
