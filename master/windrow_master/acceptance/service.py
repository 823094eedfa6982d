"""Starts acceptance tests of hosts when they are due or requested, stores their results, and notes when a host is first
listed.

 tick ─▶ listed for the first time: a row, an event
      └▶ due ─▶ begin (a row) ─▶ rental.py's walk, as a renter ─▶ conclude (the row, the host's mark, audit, event)

A renter who finds no capacity has the proofs that run end first (`give_way`). A Master that dies in between ends what
it had rented at its next start. What a walk could not end is ended by the next look.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from windrow_master.acceptance import schedule, words
from windrow_master.acceptance.model import Proof, ProofStep
from windrow_master.acceptance.rental import Rental, Ways
from windrow_master.acceptance.repository import ProofRepository
from windrow_master.acceptance.under_way import UnderWay, Walk
from windrow_master.clusters import lookup
from windrow_master.clusters.model import Cluster
from windrow_master.clusters.service import ClusterService
from windrow_master.fleet import lookup as fleet_lookup
from windrow_master.fleet.host_scheduler import HostScheduler
from windrow_master.fleet.model import Host, ProofMark, ProofOutcome
from windrow_master.fleet.service import FleetService
from windrow_master.fleet.tiers import tier_words
from windrow_master.fleet.view import Entry
from windrow_master.identity.accounts import ensure_own
from windrow_master.identity.model import Role
from windrow_master.loops import ends_alone
from windrow_master.market.model import PROOF_ACCOUNT, PROOF_NAME
from windrow_master.market.service import MarketService
from windrow_master.store.model import Operation
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.verification.schedule import back_off_ns
from windrow_proto.errors import Conflict, TooMany, Unavailable, WindrowError
from windrow_proto.ids import AccountId, HostId
from windrow_proto.model import Benchmark
from windrow_proto.ports import Clock, Rng
from windrow_proto.units import MINUTE, SECOND, money_text

LOOK_NS: Final = 2 * SECOND
"""Between two looks at who is listed and who is due, at least."""
LEFT_NS: Final = MINUTE
"""After a start and after each walk: what of it is left by then is ended."""
SIMULATED_LAST_NS: Final = 10**19
"""Added to the turn of a simulated host: real ones come first."""
LEFT_KEY: Final = HostId("left")
"""In the queue beside the hosts: what is left of walks."""
STORE_AGAIN_NS: Final = 5 * SECOND
MEASURED_NS: Final = 45 * SECOND
"""For a measurement by two relays: 17 seconds (acceptance/README.md), and a wait where one is busy with others."""
MEASURED_LOOK_NS: Final = SECOND // 2
OPERATION: Final = "host.prove"
RESTARTED: Final = "the Master was restarted meanwhile"
GAVE_WAY: Final = "it gave way to a renter"
LEFT: Final = "its proof is over"
FAILED: Final = "the Master failed"
_EVENTS: Final = {
    ProofOutcome.PASSED: "host.proved",
    ProofOutcome.FAILED: "host.proof_failed",
    ProofOutcome.UNFINISHED: "host.proof_unfinished",
}

log = structlog.get_logger(__name__)


class ProofService(HostScheduler[Walk]):
    """Proves hosts. Used on the loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        rng: Rng,
        fleet: FleetService,
        market: MarketService,
        clusters: ClusterService,
        ways: Ways,
        under_way: UnderWay,
        *,
        is_automatic: bool | None,
    ) -> None:
        """ways: into workloads. is_automatic: without being asked, too; None: not at all."""
        super().__init__("proof", store, clock, fleet, LOOK_NS, schedule.AT_ONCE, under_way)
        self.is_automatic: Final = is_automatic
        self._rng, self._market, self._clusters, self._ways = rng, market, clusters, ways
        self._fresh: set[HostId] = set()
        self._left_until_ns: int | None = None

    # --- what people ask -------------------------------------------------------------------------------------------

    async def ask(self, host_id: HostId, account_id: AccountId, actor: str) -> Operation:
        """Prove a host now; the operation ends with the result. Raises Conflict with the reason where it cannot be
        proved, TooMany where it was a moment ago."""
        self._fleet.entry(host_id)

        def begin(uow: UnitOfWork) -> tuple[Walk, Operation]:
            latest = next(iter(uow[ProofRepository].of_host(host_id, 1)), None)
            if latest is not None and latest.ended_at_ns is None:
                raise Conflict("This host is being proved already.", subject=host_id)
            if latest is not None and (age_ns := uow.now_wall_ns - latest.at_ns) < schedule.ASKED_EVERY_NS:
                left_ns = schedule.ASKED_EVERY_NS - age_ns
                text = f"This host was proved {age_ns // SECOND} s ago. Ask again in {left_ns // SECOND + 1} s."
                raise TooMany(text, subject=host_id, retry_after_ns=left_ns)
            walk = self._begin(uow, host_id, actor)
            if isinstance(walk, str):
                raise Conflict(f"This host cannot be proved: {walk}.", subject=host_id)
            return walk, uow.operation(OPERATION, host_id, account_id, actor)

        if self._group is None:
            raise Unavailable("This Master does not prove hosts yet; try again in a moment.")
        walk, operation = await self._store.write(begin, name=OPERATION)
        self._launch(host_id, walk)
        return operation

    async def of_host(self, host_id: HostId) -> tuple[Proof, ...]:
        """Return the proofs of a host, the newest first; a running one has the steps that it came to."""
        found = await self._store.read(lambda uow: uow[ProofRepository].of_host(host_id))
        walk = self._running.get(host_id)
        steps: dict[str, tuple[ProofStep, ...]] = {walk.proof.proof_id: tuple(walk.rental.steps)} if walk else {}
        return tuple(replace(one, steps=steps.get(one.proof_id, one.steps)) for one in found)

    # --- keeping time ----------------------------------------------------------------------------------------------

    async def tick(self) -> None:
        """End what no walk will end, begin with those that are due, and say who is listed now for the first time."""
        await self._end_left()
        await super().tick()
        if self._fresh:
            await self._store.write(self._list, name="host.listed")
            self._fresh.clear()
            await self._fleet.refresh()

    def _is_due(self, entry: Entry, now_ns: int) -> bool:
        if entry.host.listed_at_ns is None and schedule.is_listed(entry.host, entry.slots, now_ns):
            self._fresh.add(entry.host.host_id)
        return bool(self.is_automatic) and schedule.is_due(entry.host, entry.slots, now_ns)

    def _next_ns(self, host: Host, now_ns: int) -> int | None:
        return schedule.next_look_ns(host, now_ns)

    def _due_ns(self, host: Host) -> int:
        return (SIMULATED_LAST_NS if host.simulated else 0) + (host.proof_due_ns or 0)

    async def _end_left(self) -> None:
        """End what is meant to run for walks that are over, at a start and for a minute after each walk."""
        now_ns = self._clock.monotonic_ns()
        if self._left_until_ns is None:
            self._left_until_ns = now_ns + LEFT_NS
        left = await self._store.read(_left) if now_ns <= self._left_until_ns else ()
        if left:
            await self._store.write(self._end_all, name="proof.left")
            self._left_until_ns = now_ns + LEFT_NS
        if now_ns <= self._left_until_ns:
            self._queue.add(LEFT_KEY, now_ns + LOOK_NS)

    def _list(self, uow: UnitOfWork) -> None:
        for host_id in sorted(self._fresh):
            with self._faults.around(host_id, "list"), uow.attempt():
                self._list_one(uow, host_id)

    def _list_one(self, uow: UnitOfWork, host_id: HostId) -> None:
        host = fleet_lookup.find_host(uow, host_id)
        if host is None or host.listed_at_ns is not None:
            return
        self._fleet.hosts.save(uow, replace(host, listed_at_ns=uow.now_wall_ns))
        price = self._market.book(uow).price(host.owner_account, host.tier)
        text = f"{host.name} is listed: {tier_words(host.tier)} at {money_text(price)}/h"
        uow.event("host.listed", (host_id,), text, {"tier": host.tier, "price_per_hour": money_text(price)})

    def _pick_up(self, uow: UnitOfWork) -> None:
        """End what a Master before this one had rented."""
        ensure_own(uow, PROOF_ACCOUNT, PROOF_NAME, frozenset({Role.RENTER}))
        for proof in uow[ProofRepository].open_all():
            with self._faults.around(proof.host_id, "pick_up"), uow.attempt():
                self._clusters.lifecycle.end_request(uow, PROOF_ACCOUNT, proof.proof_id, RESTARTED, "master")
                self._conclude(uow, proof, RESTARTED, (), gave_way=False, chance=0)

    def _end_all(self, uow: UnitOfWork) -> None:
        for cluster in _left(uow):
            with self._faults.around(cluster.cluster_id, "end"), uow.attempt():
                self._clusters.lifecycle.end(uow, cluster, LEFT, "master")

    # --- one host --------------------------------------------------------------------------------------------------

    def _begin(self, uow: UnitOfWork, host_id: HostId, actor: str) -> Walk | str:
        host = fleet_lookup.find_host(uow, host_id)
        if host is None:
            return "there is no such host"
        slots = fleet_lookup.slots_of(uow, host_id)
        hindrance = schedule.hindrance(host, slots, uow.now_wall_ns)
        if hindrance is not None:
            return hindrance
        if any(one.ended_at_ns is None for one in uow[ProofRepository].of_host(host_id, 1)):
            return "it is being proved already"
        self._market.keep_funded(uow, PROOF_ACCOUNT)
        tries = (host.proof_tries or 0) + 1
        due_ns = uow.now_wall_ns + back_off_ns(tries)
        host = self._fleet.hosts.save(uow, replace(host, proof_tries=tries, proof_due_ns=due_ns))
        proof = Proof(uow.mint("proof"), host_id, uow.now_wall_ns, actor)
        uow[ProofRepository].add(proof)
        uow.audit(actor, OPERATION, host_id, "it was due" if actor == "master" else "it was asked for")
        uow.event("host.proving", (host_id,), f"{host.name} is rented for a moment to try it", actor=actor)
        (wanted, profile), kind = schedule.gpus_wanted(slots), schedule.runtime(host)
        assert kind is not None, "nothing hinders it"
        measured, cards = partial(self._measured, host_id), schedule.cards_wanted(host, slots)
        rental = Rental(
            *(self._clock, self._clusters, self._market, self._ways, host, wanted, profile, cards),
            *(kind, self._chance(), measured),
        )
        return Walk(proof, rental)

    async def _measured(self, host_id: HostId) -> Host:
        """A host with its line, measured by two relays where two serve, as far as that came in time."""
        serving, began_ns = self._fleet.relays.serving(), self._clock.monotonic_ns()
        is_asked = False
        while True:
            host = await self._store.read(lambda uow: self._fleet.hosts.load(uow, host_id))
            is_late = self._clock.monotonic_ns() - began_ns >= MEASURED_NS
            if is_late or not schedule.wants_measurement(host, len(serving), self._clock.wall_ns()):
                return host
            if not is_asked:
                try:
                    await self._store.write(
                        lambda uow: self._fleet.measures.ask(uow, host_id, "master", serving), name="proof.measure"
                    )
                except TooMany:
                    return host
                is_asked = True
            await self._clock.sleep_ns(MEASURED_LOOK_NS)

    async def _carry_out(self, work: Walk) -> None:
        try:
            unfinished = await self._rented(work)
            await self._keep(work, unfinished or work.rental.unfinished)
        finally:
            self._left_until_ns = None

    async def _break_off(self, work: Walk) -> None:
        with ends_alone("proof_end", host_id=work.proof.host_id):  # its row ends: nothing was found out
            await self._store.write(
                lambda uow: self._conclude(uow, work.proof, FAILED, (), gave_way=False, chance=0),
                name="proof.conclude",
            )
            await self._fleet.refresh()

    async def _rented(self, walk: Walk) -> str:
        """Rent it and give it back; why that was not finished, or nothing."""
        rental, unfinished = walk.rental, ""
        try:
            async with asyncio.TaskGroup() as group:
                walk.renting = group.create_task(rental.rent(walk.proof.proof_id))
        except* WindrowError as errors:
            unfinished = str(errors.exceptions[0]) or "it was broken off"
        except* Exception:
            log.exception("proof_crashed", host_id=walk.proof.host_id)
            unfinished = FAILED
        unfinished = GAVE_WAY if walk.gave_way else unfinished
        try:
            await rental.end(not walk.gave_way)
            if not unfinished:
                await rental.receipt()
        except WindrowError as error:
            unfinished = unfinished or error.detail
        except Exception:  # it is concluded all the same; what is left of it is ended by the next look
            log.exception("proof_crashed", host_id=walk.proof.host_id)
            unfinished = unfinished or FAILED
        return unfinished

    async def _keep(self, walk: Walk, unfinished: str) -> None:
        proof = replace(walk.proof, cluster_id=walk.rental.cluster_id, steps=tuple(walk.rental.steps))
        figures = () if unfinished else walk.rental.benchmarks
        chance = self._chance()
        while True:
            try:
                await self._store.write(
                    lambda uow: self._conclude(uow, proof, unfinished, figures, gave_way=walk.gave_way, chance=chance),
                    name="proof.conclude",
                )
                await self._fleet.refresh()
                return
            except WindrowError as error:
                log.warning("proof_not_stored", host_id=proof.host_id, error=str(error))
                await self._clock.sleep_ns(STORE_AGAIN_NS)

    def _conclude(
        self,
        uow: UnitOfWork,
        proof: Proof,
        unfinished: str,
        figures: Sequence[Benchmark],
        *,
        gave_way: bool,
        chance: int,
    ) -> None:
        """figures: of its cards, to be graded by from now on."""
        host = fleet_lookup.find_host(uow, proof.host_id)
        if host is None:
            return
        host = self._fleet.hosts.benchmarked(uow, host, proof.proof_id, figures)
        outcome = words.verdict(proof.steps, unfinished)
        suggested = self._market.suggested(host.tier) if host.tier else None
        text = words.sentence(host, proof.steps, unfinished, suggested)
        uow[ProofRepository].save(replace(proof, ended_at_ns=uow.now_wall_ns, outcome=outcome, words=text))
        is_told = outcome is not ProofOutcome.UNFINISHED
        due_ns = schedule.next_due_ns(outcome, host.proof_tries or 1, gave_way, chance, uow.now_wall_ns)
        after = replace(
            host,
            proof=ProofMark(uow.now_wall_ns, outcome, text) if is_told else host.proof,
            proof_due_ns=due_ns,
            proof_tries=None if outcome is ProofOutcome.PASSED else host.proof_tries,
        )
        self._fleet.hosts.save(uow, after)
        fields = {"proof": proof.proof_id} | {step.name.value: step.state.value for step in proof.steps}
        uow.audit("master", _EVENTS[outcome], host.host_id, text[:1000], fields)
        uow.event(_EVENTS[outcome], (host.host_id,), f"{host.name}: {text}", fields)
        for operation in uow.operations.running(host.host_id, OPERATION):
            is_passed = outcome is ProofOutcome.PASSED
            uow.operations.finish(operation.id, uow.now_wall_ns, None if is_passed else "conflict", text)

    def _chance(self) -> int:
        return int.from_bytes(self._rng.random_bytes(8), "big")


def _left(uow: UnitOfWork) -> list[Cluster]:
    """Return the clusters that are meant to run for proofs whose rows have ended: the row of a proof under way is open
    until its walk has ended the rental, as far as it could."""
    return lookup.going_on(uow, PROOF_ACCOUNT, [one.proof_id for one in uow[ProofRepository].open_all()])
