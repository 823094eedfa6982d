"""Sends samples, inventory, events and conditions of this host to the Master, without being asked.

It decides nothing and keeps nothing: everything goes to the outbox, which stores it and has it sent.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from windrow_agent.core import inventory_pace
from windrow_agent.core.inventory import HostFacts, build_inventory
from windrow_agent.core.layout import Layouts, with_layouts
from windrow_agent.core.sampling import batches, is_batch_due
from windrow_agent.link.outbox import Outbox
from windrow_agent.report.sampler import Sampler
from windrow_agent.runtimes.port import Runtime
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import Benchmark, Event, Inventory, Kind, Lane, inventory_hash
from windrow_proto.ports import Clock
from windrow_proto.samples import encode_batch
from windrow_proto.units import MILLISECOND, MINUTE, SECOND
from windrow_proto.windows import RecordKey
from windrow_proto.wire_host import encode_event, encode_inventory

VALUES_PER_BATCH: Final = 20_000
"""Of one telemetry message: 256 KiB holds three times as many."""
PROBE_RUNTIMES_NS: Final = MINUTE
GATHER_NS: Final = 20 * MILLISECOND
"""Changes within one moment are sent together, as host, GPUs and runtimes change at a start: each inventory costs the
Master a look at all slots of the host."""
NEW_NS: Final = 5 * SECOND
"""After its start an agent sends its samples each second, so that a page shows it at once."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a report. running: how many workloads run; faults: conditions of the agent itself; held: the cards
    that something of this agent's uses, and what; layouts: what cards may be partitioned into; more: facts of the host
    beyond those of the sampler."""

    sampler: Sampler
    runtimes: Mapping[str, Runtime]
    running: Callable[[], int]
    agent_version: str
    faults: Callable[[], Iterable[str]]
    held: Callable[[], Mapping[str, str]]
    layouts: Layouts = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)


class Reporter:
    """One agent's report; `send_samples`, `send_changes` and `probe_runtimes` run for as long as the agent does."""

    def __init__(self, sources: Sources, outbox: Outbox, clock: Clock, benchmarks: tuple[Benchmark, ...] = ()) -> None:
        self.batch_period_ns = 5 * SECOND
        """Between two batches of samples, as the Master leased it last."""
        self.hash = ""
        """Of the inventory as it is now; empty until the host was read."""
        self.told_hash = ""
        """Of the inventory as it was told last; empty when it is to be told in any case."""
        self._sources, self._outbox, self._clock = sources, outbox, clock
        sources.sampler.set_leases(sources.held)
        self._benchmarks = benchmarks
        self._began_ns = clock.monotonic_ns()
        self._inventory: Inventory | None = None
        self._told_key: RecordKey | None = None
        self._owed_until_ns = 0
        self._is_put_off = False
        self._runtimes: dict[str, str] | None = None
        self._runtime_conditions: tuple[str, ...] = ()
        self._gives_nvidia = True
        self._runtime_facts: dict[str, int | str] = {}
        self._changed = asyncio.Event()

    @property
    def conditions(self) -> tuple[str, ...]:
        """All that is the matter with this host and its agent."""
        standing = self._sources.sampler.conditions
        has_nvidia = any(card.vendor == "nvidia" for card in self._sources.sampler.gpus.gpus)
        lacks = () if self._gives_nvidia or not has_nvidia else (ConditionCode.DOCKER_NO_GPUS.value,)
        own = sorted((*self._sources.faults(), *self._runtime_conditions, *lacks))
        return (*(condition.text for condition in standing), *own)

    def changed(self) -> None:
        """Look again whether there is something to tell."""
        self._changed.set()

    def inventory_wanted(self) -> None:
        """Tell the inventory, though it may have been told already; not if that is on its way to who asks."""
        if self._told_key is not None and self._outbox.is_on_its_way(Lane.EVIDENCE, self._told_key):
            return
        self.told_hash = ""
        self._changed.set()

    def set_benchmarks(self, benchmarks: tuple[Benchmark, ...]) -> None:
        """Sets new benchmarks."""
        self._benchmarks = benchmarks
        self._changed.set()

    async def event(self, event: Event) -> None:
        """Tell one event; returns when it is on the disk."""
        await self._outbox.put(Lane.EVIDENCE, Kind.EVENT, encode_event(event))

    # --- for as long as the agent runs ----------------------------------------------------------------------------

    async def send_samples(self) -> None:
        """A batch goes the moment its last sample is whole: no sample waits for a clock of the line's own."""
        sampler = self._sources.sampler
        sent_ns = self._clock.monotonic_ns()
        while True:
            await sampler.wait_sample()
            sampler.set_workloads(self._sources.running())
            now_ns = self._clock.monotonic_ns()
            if is_batch_due(now_ns - sent_ns, sampler.period_ns, self._batch_period_now_ns(now_ns)):
                sent_ns = now_ns
                for batch in batches(sampler.take(), VALUES_PER_BATCH):
                    await self._outbox.put_telemetry(encode_batch(batch))

    def _batch_period_now_ns(self, now_ns: int) -> int:
        is_new = now_ns - self._began_ns < NEW_NS
        return min(self.batch_period_ns, SECOND) if is_new else self.batch_period_ns

    async def send_changes(self) -> None:
        """Events and inventory, whenever the sampler, the runtimes or the Master give a reason."""
        self._is_put_off = False
        async with asyncio.TaskGroup() as group:
            group.create_task(self._relay_sampler_changes(), name="sampler changes")
            while True:
                for event in self._sources.sampler.take_events():
                    await self.event(event)
                await self._send_inventory(group)
                await self._changed.wait()
                await self._clock.sleep_ns(GATHER_NS)
                self._changed.clear()

    async def _relay_sampler_changes(self) -> None:
        while True:
            await self._sources.sampler.wait_change()
            self._changed.set()

    async def _send_inventory(self, group: asyncio.TaskGroup) -> None:
        sampler = self._sources.sampler
        if sampler.host_facts == HostFacts() or self._runtimes is None:
            return  # not read yet; it will be a change. Who reads that nothing can run here would send work elsewhere
        inventory = build_inventory(
            replace(sampler.host_facts, more={**sampler.host_facts.more, **self._sources.more, **self._runtime_facts}),
            replace(sampler.gpus, gpus=with_layouts(sampler.gpus.gpus, self._sources.layouts)),
            agent_version=self._sources.agent_version,
            simulated=sampler.simulated,
            runtimes=self._runtimes,
            runtime_versions=self._runtimes,
            conditions=self.conditions,
            benchmarks=self._benchmarks,
        )
        if inventory != self._inventory:
            self._inventory, self.hash = inventory, inventory_hash(inventory)
        if self.hash == self.told_hash:
            return
        now_ns = self._clock.monotonic_ns()
        due_ns = inventory_pace.next_ns(self._owed_until_ns, now_ns) if self.told_hash else now_ns
        if due_ns > now_ns:
            if not self._is_put_off:
                self._is_put_off = True
                group.create_task(self._look_later(due_ns - now_ns), name="inventory put off")
            return
        self._owed_until_ns = inventory_pace.told(self._owed_until_ns, now_ns)
        self._told_key = await self._outbox.put(Lane.EVIDENCE, Kind.INVENTORY, encode_inventory(inventory))
        self.told_hash = self.hash

    async def _look_later(self, span_ns: int) -> None:
        await self._clock.sleep_ns(span_ns)
        self._is_put_off = False
        self._changed.set()

    async def probe_runtimes(self) -> None:
        """See every minute which runtimes can be used."""
        while True:
            facts = {name: await runtime.facts() for name, runtime in self._sources.runtimes.items()}
            found = {name: one.version for name, one in facts.items() if one.is_usable}
            conditions = tuple(one.condition for one in facts.values() if one.condition)
            more = {name: value for one in facts.values() for name, value in one.more.items()}
            gives_nvidia = all(one.gives_nvidia for one in facts.values())
            known = self._runtimes, self._runtime_conditions, self._runtime_facts, self._gives_nvidia
            if (found, conditions, more, gives_nvidia) != known:
                self._runtimes, self._runtime_conditions, self._runtime_facts = found, conditions, more
                self._gives_nvidia = gives_nvidia
                self._changed.set()
            await self._clock.sleep_ns(PROBE_RUNTIMES_NS)
