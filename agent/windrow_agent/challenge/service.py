"""Serves a channel for challenges: starts a prover for each card that is asked for, and sends the answers of the cards.

 plan ──▶ pool (a child a card) ──▶ ready or failure of each ──▶ challenge ──▶ commitment ──▶ selection ──▶ answer
 of a card whose answer was true ──▶ fill ──▶ filled ──▶ probe ──▶ values

One at a time, bounded in time, and never with a card that a workload holds: what the Master knows of that may be old.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import structlog

from windrow_agent.challenge import prover_pool as prover_pool
from windrow_agent.challenge.prover_pool import COMMAND, Outcome, ProverPool
from windrow_proto.challenge import Challenge, Failure, Plan, Selection
from windrow_proto.errors import Conflict, InvalidInput, Unavailable
from windrow_proto.fill import Fill, Probe
from windrow_proto.ids import GpuUuid
from windrow_proto.ports import Clock
from windrow_proto.wire_challenge import Step, StepReader, framed

log = structlog.get_logger()

SPARE_S: Final = 60.0
"""Of the whole, beside the provers' own deadlines: for the Master to say what comes next."""
HOLDER: Final = "challenge"
"""The name that holds a card while it is challenged, for the checks of its use."""

Hear = Callable[[], Awaitable[bytes | None]]
Tell = Callable[[bytes], Awaitable[None]]


class ChallengeService:
    """Answers challenges. held: the cards that workloads hold, and which one each; command: what a prover's process
    is, the card and the size added to it."""

    def __init__(self, clock: Clock, held: Callable[[], Mapping[str, str]], command: tuple[str, ...] = COMMAND) -> None:
        self._clock, self._held, self._command = clock, held, command
        self._cards: frozenset[str] = frozenset()

    def held(self) -> dict[str, str]:
        """Every card in use by what this agent started: by workloads, and by a challenge that is under way."""
        return {**dict.fromkeys(self._cards, HOLDER), **self._held()}

    async def serve(self, hear: Hear, tell: Tell) -> None:
        """One challenge of several cards, until the Master says no more. hear: the next bytes, None at the end.

        Raises Conflict while another is under way or a card is in use, InvalidInput for what makes no sense,
        Unavailable past the deadline.
        """
        reader = StepReader()
        try:
            async with asyncio.timeout(
                prover_pool.START_S + prover_pool.COMMIT_S + prover_pool.ANSWER_S + prover_pool.FILL_S + SPARE_S
            ):
                plan = await self._plan(hear, reader)
                self._cards = frozenset(plan.gpu_uuids)
                try:
                    log.info("challenge_begins", cards=len(plan.gpu_uuids), size=plan.size)
                    async with ProverPool(plan.gpu_uuids, plan.size, self._clock, self._command) as pool:
                        await _Talk(pool, hear, tell, reader, plan).run()
                finally:
                    self._cards = frozenset()
        except TimeoutError as error:
            raise Unavailable("The challenge took too long and was given up.") from error

    async def _plan(self, hear: Hear, reader: StepReader) -> Plan:
        while (data := await hear()) is not None:
            for _, step in reader.feed(data):
                if not isinstance(step, Plan):
                    raise InvalidInput("A challenge begins with the cards that it is for.")
                if self._cards:
                    raise Conflict("Another challenge is under way on this host.")
                used = sorted(set(step.gpu_uuids) & self._held().keys())
                if used:
                    raise Conflict(f"{used[0]} is in use; it is not challenged meanwhile.")
                return step
        raise InvalidInput("The challenge ended before it began.")


class _Talk:
    """The exchange with the Master, once the provers are ready."""

    def __init__(self, pool: ProverPool, hear: Hear, tell: Tell, reader: StepReader, plan: Plan) -> None:
        self._crew, self._hear, self._reader = pool, hear, reader
        self._write, self._plan = tell, plan
        self._telling = asyncio.Lock()
        self._asked: dict[GpuUuid, type[Step]] = {}

    async def run(self) -> None:
        """Until the Master says no more; what is under way then is given up."""
        for outcome in self._crew.ready:
            await self._tell(outcome.gpu_uuid, _said(outcome, outcome.value))
        works: list[asyncio.Task[None]] = []
        try:
            async with asyncio.TaskGroup() as group:
                while (data := await self._hear()) is not None:
                    for gpu_uuid, step in self._reader.feed(data):
                        works.append(group.create_task(self._work(gpu_uuid, step), name=f"challenge {gpu_uuid}"))
                for work in works:
                    work.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    def _work(self, gpu_uuid: GpuUuid, step: Step) -> Coroutine[Any, Any, None]:
        """Performs one step of a challenge, as a message of the Master asks; raises InvalidInput if out of order."""
        before = self._asked.get(gpu_uuid)
        if gpu_uuid in self._plan.gpu_uuids and isinstance(step, Challenge | Selection | Fill | Probe):
            self._asked[gpu_uuid] = type(step)
            if isinstance(step, Selection) and before is Challenge:
                return self._pass_on(gpu_uuid, partial(self._crew.answer_one, gpu_uuid, step))
            if isinstance(step, Fill) and before is Selection:
                return self._pass_on(gpu_uuid, partial(self._crew.fill_one, gpu_uuid, step))
            if isinstance(step, Probe) and before is Fill:
                return self._pass_on(gpu_uuid, partial(self._crew.values_one, gpu_uuid, step))
            is_its_own = isinstance(step, Challenge) and (step.gpu_uuid, step.size) == (gpu_uuid, self._plan.size)
            if isinstance(step, Challenge) and before is None and is_its_own:
                return self._pass_on(gpu_uuid, partial(self._crew.commit_one, step))
        raise InvalidInput(f"A {type(step).__name__.lower()} for {gpu_uuid!r} is out of turn.")

    async def _pass_on(self, gpu_uuid: GpuUuid, ask: Callable[[], Awaitable[Outcome[Any]]]) -> None:
        outcome = await ask()
        await self._tell(gpu_uuid, _said(outcome, outcome.value))

    async def _tell(self, gpu_uuid: GpuUuid, step: Step) -> None:
        async with self._telling:  # a message that waits for credit is not cut by another
            await self._write(framed(gpu_uuid, step))


def _said(outcome: Outcome[Any], value: Step | None) -> Step:
    return Failure(outcome.failure) if outcome.value is None or value is None else value
