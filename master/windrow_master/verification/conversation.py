"""Challenges the cards of one host over a channel, and judges the answers; keeps nothing.

 plan ─▶ host     every prover compiles and takes its memory, before anything is measured
 ready ◀─         or a failure: that card cannot be proved there
 challenge ─▶     to all that are ready, in one go: only now does the nonce leave the Master, and time begins
 commitment ◀─    that card's time ends; what it has to open is drawn and sent
 answer ◀─        judged beside the loop
 fill ─▶          to the cards that passed, in one go: to write nine tenths of the memory that they are said to have
 filled ◀─        the places to say are drawn and sent
 values ◀─        judged beside the loop

Every wait has a deadline of this side's own; what never comes fails by the judge's clock.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol

from windrow_master.verification import memory as memories
from windrow_master.verification.draw import CHANCE_BYTES
from windrow_master.verification.judge import (
    FINAL,
    Answered,
    Committed,
    Event,
    Garbled,
    Phase,
    Ticked,
    Trial,
    step,
)
from windrow_master.verification.memory import Memory
from windrow_master.verification.times import Timing, Work
from windrow_master.verification.verdict import Result
from windrow_proto.challenge import (
    KEY_BYTES,
    NO_WORKLOAD,
    Answer,
    Challenge,
    Commitment,
    Failure,
    Plan,
    Ready,
)
from windrow_proto.errors import InvalidInput, TooLarge, Unavailable, WindrowError
from windrow_proto.fill import Fill, Filled, Values
from windrow_proto.ids import GpuUuid, HostId
from windrow_proto.messages import ChannelClose, ChannelData, ChannelOpen
from windrow_proto.model import ChannelPurpose
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import SECOND, seconds
from windrow_proto.wire_challenge import Step, StepReader, framed

OPEN_S: Final = 10.0
READY_NS: Final = 150 * SECOND
"""For every prover of a host to be ready: what the agent gives them (120 s), and the line."""
STEPS_MAX: Final = 8
"""Messages of a host for each card: five are wanted, and a repetition is harmless."""


class Line(Protocol):
    """An open channel to a host."""

    async def send(self, data: bytes, stream: int = 0) -> None:
        """Send at most 64 KiB."""

    async def receive(self) -> ChannelData | ChannelClose:
        """Return the next message; ChannelClose once, as the last. Raises LinkClosed."""

    async def close(self, closing: ChannelClose) -> None:
        """Send no more."""


class Lines(Protocol):
    """Opens channels to hosts; the trunk implements it."""

    async def open(self, host_id: HostId, opening: ChannelOpen) -> Line:
        """Raises HostUnreachable when no route to it is open, LinkClosed when one breaks."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of all cards of a host. failure: why the conversation ended before its time; empty: it did not."""

    results: tuple[Result, ...]
    failure: str = ""


class Conversation:
    """One challenge of some cards of one host. timings: by card, of its class for this work; claimed: bytes of memory
    that each card is said to have, where it is said."""

    def __init__(
        self,
        clock: Clock,
        rng: Rng,
        host_key: bytes,
        work: Work,
        timings: Mapping[GpuUuid, Timing],
        claimed: Mapping[GpuUuid, int],
    ) -> None:
        self._clock, self._rng, self._host_key, self._work = clock, rng, host_key, work
        self._timings, self._claimed = timings, claimed
        self._results = {uuid: Result(uuid) for uuid in timings}
        self._reader = StepReader()
        self._steps = 0

    async def hold(self, lines: Lines, host_id: HostId) -> Outcome:
        """Begin and end it; what goes wrong is in the outcome."""
        failure = ""
        try:
            async with asyncio.timeout(OPEN_S):
                line = await lines.open(host_id, ChannelOpen(NO_WORKLOAD, ChannelPurpose.CHALLENGE))
            try:
                await self._talk(line)
            finally:
                await line.close(ChannelClose())
        except WindrowError as error:
            failure = error.detail
            if isinstance(error, InvalidInput | TooLarge):
                self._garbled()
        except TimeoutError:
            failure = "The host did not answer in time."
        for uuid, one in self._results.items():
            if one.memory is not None:
                self._results[uuid] = replace(one, memory=memories.broken(one.memory, failure))
        return Outcome(tuple(self._results.values()), failure)

    async def _talk(self, line: Line) -> None:
        await line.send(framed("", Plan(tuple(self._timings), self._work.size)))
        end_ns = self._clock.monotonic_ns() + READY_NS
        while any(not one.device and not one.failure for one in self._results.values()):
            await self._hear(line, end_ns)
        ready = [one for one in self._results.values() if one.device and not one.failure]
        for one in ready:
            challenge = Challenge(
                *(self._rng.random_bytes(KEY_BYTES), self._host_key, one.gpu_uuid),
                *(self._work.size, self._work.rounds),
            )
            trial = Trial(challenge, self._clock.monotonic_ns(), self._timings[one.gpu_uuid])
            self._results[one.gpu_uuid] = replace(one, trial=trial)
            await line.send(framed(one.gpu_uuid, challenge))
        await self._until_judged(line)
        for one in tuple(self._results.values()):
            if one.trial is not None and one.trial.phase is Phase.PASSED and not one.failure:
                await self._fill(line, one, one.trial.challenge)
        await self._until_judged(line)

    async def _fill(self, line: Line, one: Result, challenge: Challenge) -> None:
        claimed_bytes = self._claimed.get(one.gpu_uuid, 0)
        lines = memories.lines_for(claimed_bytes) if one.memory_bytes else 0
        if lines:
            fill = Fill(self._rng.random_bytes(KEY_BYTES), lines)
            memory = Memory(challenge.id, fill, claimed_bytes, self._clock.monotonic_ns())
            self._results[one.gpu_uuid] = replace(one, memory=memory)
            await line.send(framed(one.gpu_uuid, fill))

    async def _until_judged(self, line: Line) -> None:
        while (due_ns := self._next_due_ns()) is not None:
            try:
                await self._hear(line, due_ns)
            except TimeoutError:
                await self._tick(line)

    def _next_due_ns(self) -> int | None:
        live = [one for one in self._results.values() if not one.failure]
        due = [one.trial.due_ns for one in live if one.trial is not None]
        due += [one.memory.due_ns for one in live if one.memory is not None]
        return min((one for one in due if one is not None), default=None)

    async def _hear(self, line: Line, end_ns: int) -> None:
        """The next piece of the host's and what it says. Raises TimeoutError, LinkClosed, InvalidInput, TooLarge."""
        async with asyncio.timeout(seconds(max(0, end_ns - self._clock.monotonic_ns()) + 1)):
            piece = await line.receive()
        if isinstance(piece, ChannelClose):
            raise Unavailable(piece.detail or "The host ended it.")
        now_ns = self._clock.monotonic_ns()
        for gpu_uuid, said in self._reader.feed(piece.data):
            self._steps += 1
            if self._steps > STEPS_MAX * len(self._results):
                raise InvalidInput("The host says more than there is to say.")
            await self._said(line, gpu_uuid, said, now_ns)

    async def _said(self, line: Line, gpu_uuid: GpuUuid, said: Step, now_ns: int) -> None:
        one = self._results.get(gpu_uuid)
        if one is None:
            raise InvalidInput("The host speaks of a card that it was not asked about.")
        match said:
            case Ready(device, memory_bytes) if one.trial is None:
                self._results[gpu_uuid] = replace(one, device=device or "unnamed device", memory_bytes=memory_bytes)
            case Failure(detail) if one.memory is not None:
                self._results[gpu_uuid] = replace(one, memory=memories.broken(one.memory, detail))
            case Filled() | Values() if one.memory is not None:
                await self._remember(line, one, one.memory, said, now_ns)
            case Failure(detail):
                if one.trial is None or one.trial.phase not in FINAL:
                    self._results[gpu_uuid] = replace(one, failure=detail or "It failed without a word.")
            case Commitment():
                await self._judge(line, one, Committed(said, now_ns, self._rng.random_bytes(CHANCE_BYTES)))
            case Answer():
                await self._judge(line, one, Answered(said, now_ns))
            case _:
                await self._judge(line, one, Garbled(now_ns))

    async def _judge(self, line: Line, one: Result, event: Event) -> None:
        if one.trial is None or one.failure:
            return
        if isinstance(event, Answered):
            trial, asks = await asyncio.to_thread(step, one.trial, event)
        else:
            trial, asks = step(one.trial, event)
        self._results[one.gpu_uuid] = replace(one, trial=trial)
        for ask in asks:
            await line.send(framed(one.gpu_uuid, ask.selection))

    async def _remember(self, line: Line, one: Result, memory: Memory, said: Filled | Values, now_ns: int) -> None:
        if isinstance(said, Values):
            after = await asyncio.to_thread(memories.valued, memory, said, now_ns)
        else:
            after = memories.filled(memory, said, now_ns, self._rng.random_bytes(CHANCE_BYTES))
        self._results[one.gpu_uuid] = replace(one, memory=after)
        if after.probe is not memory.probe:
            await line.send(framed(one.gpu_uuid, after.probe))

    async def _tick(self, line: Line) -> None:
        for one in tuple(self._results.values()):
            if one.memory is not None:
                memory = memories.ticked(one.memory, self._clock.monotonic_ns())
                self._results[one.gpu_uuid] = replace(one, memory=memory)
                continue
            await self._judge(line, one, Ticked(self._clock.monotonic_ns()))

    def _garbled(self) -> None:
        """Judge a message that is none of a challenge: it is held against every card that was asked and not judged."""
        for uuid, one in self._results.items():
            if one.trial is not None and not one.failure:
                trial, _ = step(one.trial, Garbled(self._clock.monotonic_ns()))
                self._results[uuid] = replace(one, trial=trial)
