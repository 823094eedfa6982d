"""Challenges all cards of a host at once: one prover process for each card, begun together once all are ready.

 start    every child compiles and takes its memory      │ barrier: the slowest is waited for, the failed are left out
 commit   every child is given its challenge in one go   │ spans are measured from that moment, by this process
 answer   every child opens what was drawn of it
 fill     every child fills its card's memory, and says afterwards what blocks of it hold         │

A card that fails, hangs or talks nonsense costs that card's outcome and nothing else; every phase has a deadline, and
no child outlives the pool.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Generic, TypeVar

import structlog

from windrow_agent.challenge.records import FAILURE_MAX, HEAD, read_head, record
from windrow_agent.core.gpu_port import GPU_COUNT_MAX
from windrow_proto.challenge import Answer, Challenge, Commitment, Ready, Selection
from windrow_proto.errors import InvalidInput, WindrowError
from windrow_proto.fill import Fill, Filled, Probe, Values
from windrow_proto.ids import GpuUuid
from windrow_proto.ports import Clock
from windrow_proto.wire_challenge import (
    decode_answer,
    decode_commitment,
    decode_filled,
    decode_values,
    encode_challenge,
    encode_fill,
    encode_probe,
    encode_selection,
)
from windrow_proto.wire_fields import clean_text

log = structlog.get_logger()

COMMAND: Final = (sys.executable, "-m", "windrow_agent.challenge.child")
START_S: Final = 120.0
"""For every child to compile and take its memory: seconds, with a cold cache for many cards more."""
COMMIT_S: Final = 130.0
"""A little more than the Master waits at all: what comes later nobody wants."""
ANSWER_S: Final = 60.0
FILL_S: Final = 60.0
"""To fill a card's memory: the prover gives it 20 s and compiles once more."""
VALUES_S: Final = 10.0
DIGITS_MAX: Final = 19
"""Of a number of bytes that fits 63 bits."""
KILL_S: Final = 5.0
"""For a killed child to be gone; one that is stuck in its driver stays until that lets go."""

T = TypeVar("T")


class ProverFailed(Exception):
    """A card's prover failed, with what it said."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[T]):
    """The result of one card. value: None if the card failed, and then `failure` says how; span_ns: from the moment
    that all were asked, on this host's monotonic clock: the host's claim, by which the Master does not judge."""

    gpu_uuid: GpuUuid
    value: T | None
    failure: str
    span_ns: int


class ProverPool:
    """Provers of different cards, for one challenge each; an async context manager. Raises InvalidInput for none or
    too many cards. `ready`, once it is entered: each card's device, in the order of the cards."""

    ready: tuple[Outcome[Ready], ...] = ()

    def __init__(
        self, gpu_uuids: Collection[GpuUuid], size: int, clock: Clock, command: tuple[str, ...] = COMMAND
    ) -> None:
        if not 1 <= len(set(gpu_uuids)) == len(gpu_uuids) <= GPU_COUNT_MAX:
            raise InvalidInput(f"From one to {GPU_COUNT_MAX} different cards can be challenged at once.")
        self._clock = clock
        self._cards = [_Card(uuid, (*command, "--gpu", uuid, "--size", str(size))) for uuid in gpu_uuids]

    async def __aenter__(self) -> "ProverPool":
        try:
            began = self._clock.monotonic_ns()
            self.ready = await _side_by_side([self._outcome(card, card.start, START_S, began) for card in self._cards])
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def commit_one(self, challenge: Challenge) -> Outcome[Commitment]:
        """Have one card do the work of its challenge, whatever the others do."""
        return await self._ask_one(challenge.gpu_uuid, encode_challenge(challenge), decode_commitment, COMMIT_S)

    async def answer_one(self, gpu_uuid: GpuUuid, selection: Selection) -> Outcome[Answer]:
        """Have one card open what was drawn of it."""
        return await self._ask_one(gpu_uuid, encode_selection(selection), decode_answer, ANSWER_S)

    async def fill_one(self, gpu_uuid: GpuUuid, fill: Fill) -> Outcome[Filled]:
        """Have one card's memory filled."""
        return await self._ask_one(gpu_uuid, encode_fill(fill), decode_filled, FILL_S)

    async def values_one(self, gpu_uuid: GpuUuid, probe: Probe) -> Outcome[Values]:
        """Have one card say what it was filled with."""
        return await self._ask_one(gpu_uuid, encode_probe(probe), decode_values, VALUES_S)

    async def commit(self, challenges: Mapping[GpuUuid, Challenge]) -> tuple[Outcome[Commitment], ...]:
        """Have every card do the work of its challenge, all at once; in the order of the cards."""
        asked = {uuid: encode_challenge(one) for uuid, one in challenges.items()}
        return await self._ask(asked, decode_commitment, COMMIT_S)

    async def answer(self, selections: Mapping[GpuUuid, Selection]) -> tuple[Outcome[Answer], ...]:
        """Have every card open what was drawn of it; in the order of the cards."""
        asked = {uuid: encode_selection(one) for uuid, one in selections.items()}
        return await self._ask(asked, decode_answer, ANSWER_S)

    async def close(self) -> None:
        """End every child."""
        await _side_by_side([card.end() for card in self._cards])

    async def _ask_one(
        self, gpu_uuid: GpuUuid, asked: bytes, read: Callable[[bytes], T], deadline_s: float
    ) -> Outcome[T]:
        card = next(one for one in self._cards if one.gpu_uuid == gpu_uuid)

        async def exchange() -> T:
            return read(await card.exchange(asked))

        return await self._outcome(card, exchange, deadline_s, self._clock.monotonic_ns())

    async def _ask(
        self, asked: Mapping[GpuUuid, bytes], read: Callable[[bytes], T], deadline_s: float
    ) -> tuple[Outcome[T], ...]:
        began = self._clock.monotonic_ns()

        def work(card: "_Card") -> Callable[[], Awaitable[T]]:
            async def exchange() -> T:
                if card.gpu_uuid not in asked:
                    raise ProverFailed("Nothing was asked of this card.")
                return read(await card.exchange(asked[card.gpu_uuid]))

            return exchange

        return await _side_by_side([self._outcome(card, work(card), deadline_s, began) for card in self._cards])

    async def _outcome(
        self, card: "_Card", work: Callable[[], Awaitable[T]], deadline_s: float, began_ns: int
    ) -> Outcome[T]:
        """One card's part of a phase; what goes wrong ends that card."""
        if not card.failure:
            try:
                async with asyncio.timeout(deadline_s):
                    value = await work()
                return Outcome(card.gpu_uuid, value, "", self._clock.monotonic_ns() - began_ns)
            except TimeoutError:
                card.failure = f"The prover did not answer within {deadline_s:g} s."
            except (asyncio.IncompleteReadError, ConnectionError):
                card.failure = "The prover ended before it answered."
            except (ProverFailed, WindrowError, OSError) as error:
                card.failure = clean_text(str(error), FAILURE_MAX) or type(error).__name__
            log.warning("challenge_failed", gpu_uuid=card.gpu_uuid, failure=card.failure)
            await card.end()
        return Outcome(card.gpu_uuid, None, card.failure, self._clock.monotonic_ns() - began_ns)


class _Card:
    """One card and its child. failure: why it is out, empty while it is in."""

    def __init__(self, gpu_uuid: GpuUuid, command: tuple[str, ...]) -> None:
        self.gpu_uuid = gpu_uuid
        self.failure = ""
        self._command = command
        self._child: asyncio.subprocess.Process | None = None

    async def start(self) -> Ready:
        """Begin the child and wait until it is ready."""
        pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        self._child = await asyncio.create_subprocess_exec(*self._command, stdin=pipe, stdout=pipe, stderr=nowhere)
        name, _, memory = (await self._hear()).decode("utf-8", "replace").partition("\n")
        return Ready(clean_text(name), int(memory) if memory.isdecimal() and len(memory) < DIGITS_MAX else 0)

    async def exchange(self, body: bytes) -> bytes:
        """Ask, and the answer."""
        assert self._child is not None and self._child.stdin is not None, "exchange before start"
        with suppress(ConnectionError):  # one that has ended may have said why
            self._child.stdin.write(record(body))
            await self._child.stdin.drain()
        return await self._hear()

    async def end(self) -> None:
        """Kill the child, if it is there; safe to call twice."""
        if self._child is None or self._child.returncode is not None:
            return
        with suppress(ProcessLookupError):  # it ended this very moment
            self._child.kill()
        try:
            async with asyncio.timeout(KILL_S):
                await self._child.communicate()  # not wait: it would wait for a pipe that nobody reads
        except TimeoutError:
            log.warning("challenge_child_stuck", gpu_uuid=self.gpu_uuid, pid=self._child.pid)

    async def _hear(self) -> bytes:
        assert self._child is not None and self._child.stdout is not None, "heard before start"
        size, is_done = read_head(await self._child.stdout.readexactly(HEAD.size))
        body = await self._child.stdout.readexactly(size)
        if not is_done:
            raise ProverFailed(body.decode("utf-8", "replace"))
        return body


async def _side_by_side(works: list[Coroutine[Any, Any, T]]) -> tuple[T, ...]:
    """All results, in order."""
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(work) for work in works]
    return tuple(task.result() for task in running)
