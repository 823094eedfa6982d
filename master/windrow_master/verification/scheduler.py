"""Challenges hosts when they are due or an operator asks, and records the verdicts and the host's new state.

 due ─▶ begin (one transaction: VERIFYING, the cards are off the market) ─▶ conversation ─▶ conclude (one transaction:
 a row for each card, its condition, the host's state, audit, event, when it is due again)

A Master that dies in between finds the cards at its next start, gives them back, and tries again after the back-off.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import structlog

from windrow_master.fleet import verdicts
from windrow_master.fleet.availability import part_name
from windrow_master.fleet.challenges import Challenged
from windrow_master.fleet.host_scheduler import HostScheduler
from windrow_master.fleet.model import Host, HostFacts, Verification
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.states import VerifyEvent, VerifyOutcome, VerifyState, step_verify
from windrow_master.fleet.view import Entry
from windrow_master.loops import ends_alone
from windrow_master.store.model import Operation
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.verification import schedule
from windrow_master.verification.conversation import Conversation, Lines, Outcome
from windrow_master.verification.times import TIMES, Timing, Work, timing
from windrow_master.verification.verdict import ALONE, side_by_side, verification
from windrow_proto.conditions import ConditionCode
from windrow_proto.errors import Conflict, HostUnreachable, Unavailable, WindrowError
from windrow_proto.ids import AccountId, GpuUuid, HostId
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import SECOND

LOOK_NS: Final = 5 * SECOND
"""Between two looks at who is due, at least."""
STORE_AGAIN_NS: Final = 5 * SECOND
OPERATION: Final = "host.verify"
_EVENTS: Final = {
    VerifyEvent.PASS: ("host.verified", "{name} is verified"),
    VerifyEvent.FAIL: ("host.verify_failed", "{name} failed its verification"),
    VerifyEvent.GIVE_UP: ("host.unverified", "{name} could not be verified"),
}

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Begun:
    """A challenge that was written down: it is due to be held. classes: of the GPU table, by card."""

    verification_id: str
    host: Host
    classes: Mapping[GpuUuid, str]


class VerificationService(HostScheduler[Begun]):
    """Challenges hosts. Used on the loop only. times: which classes are calibrated, and how."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: Rng,
        fleet: FleetService,
        lines: Lines,
        host_facts: Callable[[HostId], Awaitable[HostFacts | None]],
        version: str,
        times: Mapping[tuple[str, Work], Timing] = TIMES,
    ) -> None:
        super().__init__("verification", store, clock, fleet, LOOK_NS, schedule.AT_ONCE, {})
        self._rng, self._lines, self._host_facts, self._version = rng, lines, host_facts, version
        self.times = times

    # --- what people ask -------------------------------------------------------------------------------------------

    async def ask(self, host_id: HostId, account_id: AccountId, actor: str) -> Operation:
        """Challenge every free card of a host now; the operation ends with the verdict.

        Raises Conflict where nothing can be challenged, with the reason, HostUnreachable.
        """
        host = self._fleet.entry(host_id).host
        hindrance = schedule.hindrance(host)
        if hindrance is not None:
            raise Conflict(f"This host cannot be verified: {hindrance}.", subject=host_id)
        if not self._fleet.is_connected(host_id):
            raise HostUnreachable(subject=host_id)
        if host_id in self._running:
            raise Conflict("This host is being verified already.", subject=host_id)
        if self._group is None:
            raise Unavailable("This Master does not verify yet; try again in a moment.")

        def begin(uow: UnitOfWork) -> tuple[Begun, Operation]:
            begun = self._begin(uow, host_id, actor, is_asked=True)
            if isinstance(begun, str):
                raise Conflict("Every GPU of this host is in use or out of order.", subject=host_id)
            return begun, uow.operation(OPERATION, host_id, account_id, actor)

        self._running[host_id] = None
        try:
            begun, operation = await self._store.write(begin, name="host.verify")
            self._launch(host_id, begun)
        finally:
            self._release(host_id, None)
        return operation

    async def of_host(self, host_id: HostId) -> tuple[Verification, ...]:
        """Return the verdicts, the newest first; of each card the newest is among them."""
        return tuple(await self._store.read(lambda uow: self._fleet.challenges.past(uow, host_id)))

    # --- keeping time ----------------------------------------------------------------------------------------------

    def _is_due(self, entry: Entry, now_ns: int) -> bool:
        return schedule.is_due(entry.host, now_ns)

    def _next_ns(self, host: Host, now_ns: int) -> int | None:
        return host.verify_due_ns if host.verify_due_ns is not None and host.verify_due_ns > now_ns else None

    def _due_ns(self, host: Host) -> int:
        return host.verify_due_ns or 0

    def _pick_up(self, uow: UnitOfWork) -> None:
        """Give back what a Master before this one was challenging."""
        for host_id in self._fleet.challenges.under_way(uow):
            with self._faults.around(host_id, "pick_up"), uow.attempt():
                self._conclude(uow, host_id, {}, "the Master was restarted meanwhile")

    # --- one host --------------------------------------------------------------------------------------------------

    def _begin(self, uow: UnitOfWork, host_id: HostId, actor: str, *, is_asked: bool = False) -> Begun | str:
        """Take the cards off the market and say so."""
        known = self._fleet.challenges.of_host(uow, host_id)
        if known is None or schedule.hindrance(known.host) is not None or known.host.inventory is None:
            return "it cannot be challenged"
        host, slots, inventory, now_ns = known.host, known.slots, known.host.inventory, uow.now_wall_ns
        cards = schedule.free_cards(host, slots) if is_asked else schedule.wanting(host, slots, known.latest, now_ns)
        if not cards:
            if not is_asked:
                self._put_off(uow, known)
            return "none of its cards is to be challenged now"
        tries = (host.verify_tries or 0) + 1
        state = step_verify(host.verify_state, VerifyEvent.BEGIN).state
        due_ns = now_ns + schedule.back_off_ns(tries)
        host = replace(host, verify_state=state, verify_tries=tries, verify_due_ns=due_ns)
        host = self._fleet.hosts.challenged(uow, host, known.standing | schedule.running(cards))
        verification_id = uow.mint("verification")
        fields = {"cards": str(len(cards)), "verification": verification_id, "try": str(tries)}
        uow.audit(actor, OPERATION, host_id, "it was asked for" if is_asked else "it was due", fields)
        text = f"{host.name}: {len(cards)} of {len(inventory.gpus)} GPUs are being verified"
        uow.event("host.verifying", (host_id, *cards), text, fields, actor)
        classes = {slot.gpu_uuid: slot.tier.partition("/")[0] for slot in slots if slot.gpu_uuid is not None}
        return Begun(verification_id, host, {uuid: classes[uuid] for uuid in cards})

    def _put_off(self, uow: UnitOfWork, known: Challenged) -> None:
        """No card can be challenged now: all that are not proved are in use, or all are proved."""
        host, latest = known.host, known.latest
        event = schedule.conclude(host, latest, known.failed)
        if host.verify_state is VerifyState.VERIFYING:
            self._conclude(uow, host.host_id, {}, "no GPU of it is free to be challenged")
            return
        oldest_ns = min((one.at_ns for one in latest.values()), default=uow.now_wall_ns)
        is_whole = event is VerifyEvent.PASS and oldest_ns + schedule.AGAIN_NS > uow.now_wall_ns
        due_ns = oldest_ns + schedule.AGAIN_NS if is_whole else uow.now_wall_ns + schedule.IN_USE_AGAIN_NS
        self._fleet.hosts.save(uow, replace(host, verify_due_ns=due_ns))

    async def _carry_out(self, work: Begun) -> None:
        outcome = await self._hold(work)
        log.info("host_challenged", host_id=work.host.host_id, failure=outcome.failure, cards=len(outcome.results))
        await self._keep(work, outcome)

    async def _break_off(self, work: Begun) -> None:
        def conclude(uow: UnitOfWork) -> None:
            # Its cards go back on the market: nothing was found out.
            self._conclude(uow, work.host.host_id, {}, "the Master met a bug with it")

        with ends_alone("challenge_end", host_id=work.host.host_id):
            await self._store.write(conclude, name="verify.conclude")
            await self._fleet.refresh()

    async def _hold(self, begun: Begun) -> Outcome:
        host_id = begun.host.host_id
        facts = await self._host_facts(host_id)
        if facts is None:
            return Outcome((), "The host is no member any more.")
        work = schedule.work_for(set(begun.classes.values()), self.times)
        timings = {uuid: timing(one, work, self.times) for uuid, one in begun.classes.items()}
        gpus = begun.host.inventory.gpus if begun.host.inventory is not None else ()
        claimed = {gpu.uuid: gpu.memory_bytes for gpu in gpus if gpu.memory_bytes is not None}
        conversation = Conversation(self._clock, self._rng, facts.public_key, work, timings, claimed)
        return await conversation.hold(self._lines, host_id)

    async def _keep(self, begun: Begun, outcome: Outcome) -> None:
        """Write it down; where the store refuses, again, since the cards are off the market until it is."""

        def conclude(uow: UnitOfWork) -> None:
            company = side_by_side(outcome.results, begun.classes)
            rows = {
                result.gpu_uuid: verification(
                    *(begun.verification_id, begun.host, result, uow.now_wall_ns, self._version),
                    company.get(result.gpu_uuid, ALONE),
                    is_broken=bool(outcome.failure),
                )
                for result in outcome.results
            }
            self._conclude(uow, begun.host.host_id, rows, outcome.failure)

        while True:
            try:
                await self._store.write(conclude, name="verify.conclude")
                await self._fleet.refresh()
                return
            except WindrowError as error:
                log.warning("verdict_not_stored", host_id=begun.host.host_id, error=str(error))
                await self._clock.sleep_ns(STORE_AGAIN_NS)

    def _conclude(self, uow: UnitOfWork, host_id: HostId, rows: Mapping[GpuUuid, Verification], failure: str) -> None:
        """Conclude what the outcome makes of the host. rows: of the cards challenged now; failure: why it was broken
        off, or empty."""
        known = self._fleet.challenges.record(uow, host_id, rows.values())
        if known is None:
            return
        host = known.host
        event = schedule.conclude(host, known.latest, known.failed)
        outcomes = {row.outcome for row in rows.values()} or {VerifyOutcome.UNFINISHED}
        tries = host.verify_tries or 1
        is_apart = any(verdicts.is_apart(row) for row in rows.values())
        due_ns = schedule.next_due_ns(event, outcomes, tries, uow.now_wall_ns, apart=is_apart)
        after = replace(
            host,
            verify_state=step_verify(host.verify_state, event).state,
            verify_tries=None if event is VerifyEvent.PASS else host.verify_tries,
            # None: its driver or its cards changed meanwhile, and it is due at once.
            verify_due_ns=None if host.verify_due_ns is None else due_ns,
        )
        runs = ConditionCode.CHALLENGE_RUNNING
        found = {code: words for code, words in known.standing.items() if not code.startswith(runs)}
        passed = {uuid for uuid, row in rows.items() if row.outcome is VerifyOutcome.PASSED}
        self._fleet.hosts.challenged(uow, after, found, passed)
        kind, words = _EVENTS[event]
        failed = [row for row in rows.values() if row.outcome is not VerifyOutcome.PASSED]
        reasons = [f"{part_name(host, row.gpu_uuid) or 'a GPU'}: {row.detail}" for row in failed]
        reasons += ["its cards worked one after another"] if is_apart else []
        text = "; ".join([words.format(name=host.name), *([failure] if failure else []), *reasons[:3]])
        fields = {str(one): str(sum(row.outcome is one for row in rows.values())) for one in VerifyOutcome}
        uow.audit("master", kind, host_id, text[:1000], fields)
        uow.event(kind, (host_id, *rows), text, fields)
        for operation in uow.operations.running(host_id, OPERATION):
            is_passed = event is VerifyEvent.PASS
            uow.operations.finish(operation.id, uow.now_wall_ns, None if is_passed else "conflict", text)
