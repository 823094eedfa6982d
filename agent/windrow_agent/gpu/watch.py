"""Keeps one GPU backend open, swept and listened to, with at most one call in flight and a deadline for each.

The owner calls `step` whenever something may have changed and never waits for the driver:

    closed --open--> reading facts --> ready: sweep when asked, else wait for events
    a call past its deadline: gpu.sweep_stalled until it answers    the library broke: closed, opened again after 30 s
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Final

import structlog

from windrow_agent.core import availability
from windrow_agent.core.availability import Availability, GpuState
from windrow_agent.core.gpu_port import (
    Condition,
    CutRefusedError,
    GpuBackend,
    GpuEvent,
    GpuEventKind,
    GpuInventory,
    GpuLook,
    Readings,
)
from windrow_agent.core.sharing import Shares, with_shares
from windrow_agent.gpu.backend_errors import FailedCall, answered
from windrow_agent.gpu.partition_request import PartitionRequest
from windrow_agent.threads import Runner
from windrow_proto.conditions import ConditionCode
from windrow_proto.model import Event
from windrow_proto.units import MILLISECOND, MINUTE, SECOND, seconds

log = structlog.get_logger()

SWEEP_DEADLINE_NS: Final = 600 * MILLISECOND
"""A healthy sweep of eight cards takes milliseconds. With a second between two sweeps and what the way to the Master
takes, a driver that hangs has its GPUs off the market within two seconds; one that is only slow has them back with its
next answer."""

FACTS_DEADLINE_NS: Final = 2 * SECOND
"""For reading the facts again; some of them are read from the card's own memory. The first look may start the card."""

LATE_TWICE_NS: Final = 100 * MILLISECOND
"""A call counts as hanging when two looks this far apart found it late: a process that was stopped itself sees every
call late at its first look."""

LOOK_AGAIN_NS: Final = 250 * MILLISECOND
"""From a sweep that saw what two in a row must see, to the second."""

OPEN_DEADLINE_NS: Final = 120 * SECOND
"""Without persistence the driver takes seconds per card to start."""

REOPEN_AFTER_NS: Final = 30 * SECOND
LISTEN_NS: Final = SECOND
"""One wait for events; also how late a shorter period may take hold."""

EVENTS_MAX: Final = 256
"""Events kept for the owner; a storm beyond is counted and its oldest dropped."""

REPEAT_NS: Final = SECOND
"""A program's fault is reported once for each part of the card that ran it: the same XID of the same card is told once
a second, and the rest are counted."""

REOPEN: Final = frozenset(
    {ConditionCode.GPU_UNAVAILABLE, ConditionCode.GPU_NO_DRIVER, ConditionCode.GPU_DRIVER_MISMATCH}
)

CUT_DEADLINE_NS: Final = 2 * MINUTE
"""A change of the MIG mode unbinds and resets the card, which nobody has measured here: generous."""

LOOK_DEADLINE_S: Final = 10.0
"""One wait for events, a sweep, and the look itself."""


class _Kind(Enum):
    OPEN = "open"
    INVENTORY = "inventory"
    SWEEP = "sweep"
    LISTEN = "listen"
    CUT = "cut"
    CLOSE = "close"


DEADLINE_NS: Final[Mapping[_Kind, int]] = {
    _Kind.OPEN: OPEN_DEADLINE_NS,
    _Kind.INVENTORY: OPEN_DEADLINE_NS,  # the first look at each card may be what starts it
    _Kind.SWEEP: SWEEP_DEADLINE_NS,
    _Kind.LISTEN: 5 * SECOND + LISTEN_NS,
    _Kind.CUT: CUT_DEADLINE_NS,
    _Kind.CLOSE: 5 * SECOND,
}


@dataclass(frozen=True, slots=True)
class _Call:
    kind: _Kind
    began_ns: int
    task: "asyncio.Future[object]"


class GpuWatch:
    """The state of this host's GPUs as last heard. All methods are called on the loop."""

    def __init__(self, backend: GpuBackend, runner: Runner, shares: Shares | None = None) -> None:
        self._shares = shares or {}
        self.inventory = GpuInventory()
        self.last_good_ns: int | None = None
        self.events_dropped = 0
        self.events_repeated = 0
        self._backend = backend
        self._runner = runner
        self._call: _Call | None = None
        self._refused: Condition | None = Condition(ConditionCode.GPU_INITIALISING)
        self._is_open = False
        self._close_wanted = False
        self._retry_ns = 0
        self._sweep_wanted: bool | None = None
        self._listen_wanted = False
        self._cut: PartitionRequest | None = None
        self._inventory_wanted = False
        self._is_listed_otherwise = False
        self._mig_listed: dict[str, bool | None] = {}
        self._fresh: Readings | None = None
        self._series: tuple[tuple[str, int], ...] = ()
        self._stalled = False
        self._has_facts = False
        self._late_ns: int | None = None
        self._look_again_ns: int | None = None
        self._told_ns: dict[tuple[str, GpuEventKind, int], int] = {}
        self._leases: Callable[[], Mapping[str, str]] = dict
        self._holders: dict[str, tuple[str, int]] = {}
        self._states: dict[str, GpuState] = {}
        self._reported: tuple[Condition, ...] = ()
        self._events: list[Event] = []

    # --- what the owner asks for and sees ----------------------------------------------------------

    @property
    def task(self) -> "asyncio.Future[object] | None":
        """The call in flight, to wait for."""
        return self._call.task if self._call else None

    @property
    def listens(self) -> bool:
        """True if the call in flight is only a wait for events."""
        return self._call is not None and self._call.kind is _Kind.LISTEN

    @property
    def is_sweep_due(self) -> bool:
        """True if a sweep was asked for, has not ended, and may still end soon."""
        asked = self._sweep_wanted is not None or (self._call is not None and self._call.kind is _Kind.SWEEP)
        return asked and self._is_open and not self._stalled

    @property
    def is_ready(self) -> bool:
        """True if the backend is open and answers."""
        return self._is_open and not self._stalled

    @property
    def series(self) -> tuple[tuple[str, int], ...]:
        """The series that the last sweep read, to be shown absent while there is no newer sweep."""
        return self._series

    def conditions(self) -> tuple[Condition, ...]:
        """All that is the matter, in a fixed order."""
        if self._is_sound:
            return ()  # nearly always, and asked with every look at the host
        found = {*self._reported, *availability.conditions(self._states)}
        if self._refused is not None:
            found.add(self._refused)
        if self._stalled:
            found.add(Condition(ConditionCode.GPU_SWEEP_STALLED))
        return tuple(sorted(found))

    @property
    def _is_sound(self) -> bool:
        is_quiet = self._refused is None and not self._stalled and not self._reported
        return is_quiet and not any(state.reasons for state in self._states.values())

    def availability(self) -> Mapping[str, Availability]:
        """GPU by GPU, what it is good for."""
        return {uuid: state.availability for uuid, state in self._states.items()}

    def want_sweep(self, with_processes: bool) -> None:
        """Sweep as soon as the thread is free."""
        self._sweep_wanted = with_processes or bool(self._sweep_wanted)

    def want_inventory(self) -> None:
        """Read the facts anew as soon as the thread is free."""
        self._inventory_wanted = True

    def set_leases(self, leases: Callable[[], Mapping[str, str]]) -> None:
        """Sets the function that tells which workload holds which GPU; it is called at each sweep and event, so that no
        start is late."""
        self._leases = lambda: self._with_cards(leases())
        self._backend.leased(frozenset(self._leases()))

    def _with_cards(self, leases: Mapping[str, str]) -> Mapping[str, str]:
        """The leases with those of slices on their cards, too; several workloads of one card by comma."""
        if not leases:
            return leases  # asked each second
        found = dict(leases)
        for gpu in self.inventory.gpus:
            held = sorted({leases[part.uuid] for part in gpu.slices if part.uuid in leases})
            if held:
                found[gpu.uuid] = ",".join(held)
        return found

    @property
    def wake_ns(self) -> int | None:
        """By when the owner must look again, beside when the call in flight ends; None: whenever it likes."""
        if self._call is None:
            return self._look_again_ns
        if self._stalled:
            return None
        return self._late_ns + LATE_TWICE_NS if self._late_ns is not None else self._deadline_ns(self._call) + 1

    async def look(self, uuids: frozenset[str]) -> Mapping[str, GpuLook]:
        """These cards and slices as they are now; what does not answer in time is left out."""
        try:
            async with asyncio.timeout(LOOK_DEADLINE_S):
                return await self._runner.call(lambda: self._backend.look(uuids))
        except TimeoutError:
            return {}

    async def cut(self, uuid: str, profiles: tuple[str, ...]) -> None:
        """GpuBackend.cut when the thread is free, and until the facts are read anew. Raises CutRefusedError."""
        if self._cut is not None or not self.is_ready:
            raise CutRefusedError("the driver is not ready for it")
        self._cut = PartitionRequest(uuid, profiles)
        try:
            async with asyncio.timeout(seconds(CUT_DEADLINE_NS + OPEN_DEADLINE_NS)):
                await self._cut.done
        except TimeoutError as error:
            raise CutRefusedError("the driver did not answer in time, and nobody knows what became of it") from error
        finally:
            self._cut = None

    def take_readings(self) -> Readings | None:
        """The sweep that ended since the last call, if one did."""
        fresh, self._fresh = self._fresh, None
        return fresh

    def take_events(self) -> list[Event]:
        """Takes the events since the last call."""
        events, self._events = self._events, []
        return events

    @property
    def has_events(self) -> bool:
        """True if `take_events` has any."""
        return bool(self._events)

    # --- one step --------------------------------------------------------------------------------

    def step(self, group: asyncio.TaskGroup, now_ns: int, wall_ns: int, next_tick_ns: int) -> None:
        """Take the answer that has come, judge the one that has not, and make the next call."""
        if self._call is not None and self._call.task.done():
            call, self._call = self._call, None
            self._answer(call.kind, call.task.result(), now_ns, wall_ns)
        if self._call is None:
            self._next(group, now_ns, next_tick_ns)
        call_now = self._call
        is_late = call_now is not None and now_ns > self._deadline_ns(call_now)
        self._late_ns = (now_ns if self._late_ns is None else self._late_ns) if is_late else None
        late = self._late_ns is not None and now_ns - self._late_ns >= LATE_TWICE_NS
        if late and not self._stalled:
            log.warning("gpu_sweep_stalled", call=call_now.kind.value if call_now else "")
            self._states = {uuid: availability.stalled(state) for uuid, state in self._states.items()}
        self._stalled = late

    def _deadline_ns(self, call: _Call) -> int:
        is_known = call.kind is _Kind.INVENTORY and self._has_facts
        return call.began_ns + (FACTS_DEADLINE_NS if is_known else DEADLINE_NS[call.kind])

    def _next(self, group: asyncio.TaskGroup, now_ns: int, next_tick_ns: int) -> None:
        backend = self._backend
        if self._close_wanted:
            self._close_wanted = False
            self._start(group, _Kind.CLOSE, backend.close, now_ns)
        elif not self._is_open:
            self._sweep_wanted = self._look_again_ns = None
            if now_ns >= self._retry_ns:
                self._start(group, _Kind.OPEN, backend.open, now_ns)
        elif self._cut is not None and not self._cut.is_begun:
            cut, self._cut.is_begun = self._cut, True
            self._start(group, _Kind.CUT, lambda: cut.perform(backend), now_ns)
        elif self._inventory_wanted:
            self._inventory_wanted = False
            self._start(group, _Kind.INVENTORY, backend.inventory, now_ns)
        elif self._sweep_wanted is not None:
            with_processes, self._sweep_wanted = self._sweep_wanted, None
            self._start(group, _Kind.SWEEP, lambda: backend.sample(with_processes), now_ns)
        elif self._look_again_ns is not None and now_ns >= self._look_again_ns:
            self._start(group, _Kind.SWEEP, lambda: backend.sample(False), now_ns)
        elif backend.waits:
            span_ns = min(LISTEN_NS, (self._look_again_ns or next_tick_ns) - now_ns, next_tick_ns - now_ns)
            if span_ns > 0:
                self._start(group, _Kind.LISTEN, lambda: backend.events(seconds(span_ns)), now_ns)
        elif self._listen_wanted:  # what does not wait is asked once after each sweep
            self._listen_wanted = False
            self._start(group, _Kind.LISTEN, lambda: backend.events(0), now_ns)

    def _start(self, group: asyncio.TaskGroup, kind: _Kind, work: Callable[[], object], now_ns: int) -> None:
        if kind is _Kind.SWEEP:
            self._look_again_ns = None
        guarded = partial(answered, kind.value, work)
        made = self._runner.at_once(guarded)
        task = made or group.create_task(self._runner.call(guarded), name=f"gpu {kind.value}")
        self._call = _Call(kind, now_ns, task)

    # --- answers ---------------------------------------------------------------------------------

    def _answer(self, kind: _Kind, answer: object, now_ns: int, wall_ns: int) -> None:
        if kind is _Kind.CLOSE:
            return
        if isinstance(answer, FailedCall):
            if kind is _Kind.CUT:
                self._was_cut(CutRefusedError(answer.detail))
            self._shut(Condition(ConditionCode.GPU_UNAVAILABLE, detail=answer.detail), now_ns)
            return
        match kind:
            case _Kind.CUT:
                self._was_cut(answer if isinstance(answer, CutRefusedError) else None)
            case _Kind.OPEN:
                self._opened(answer if isinstance(answer, Condition) else None, now_ns)
            case _Kind.INVENTORY if isinstance(answer, GpuInventory):
                self.inventory, self._has_facts = replace(answer, gpus=with_shares(answer.gpus, self._shares)), True
                self._keep_states()
                if self._cut is not None:
                    self._cut.tell()
            case _Kind.SWEEP if isinstance(answer, Mapping):
                self._swept(answer, now_ns, wall_ns)
            case _Kind.LISTEN if isinstance(answer, list):
                self._heard(answer, now_ns, wall_ns)
            case _:
                raise AssertionError(f"{kind} answered with {type(answer).__name__}")
        self._look_at_backend(now_ns)

    def _was_cut(self, refused: CutRefusedError | None) -> None:
        cut, self._inventory_wanted = self._cut, True
        if cut is None:
            return  # nobody waits any more; the inventory says what became of it
        known = self._states.get(cut.uuid)
        if known is not None and refused is None:
            kept = dict(known.reasons)
            kept.pop(ConditionCode.GPU_MIG_CHANGED, None)
            self._states[cut.uuid] = replace(known, mig_listed=bool(cut.profiles), reasons=kept)
        cut.end(refused)

    def _opened(self, refused: Condition | None, now_ns: int) -> None:
        if refused is not None and (self._refused is None or refused.code is not self._refused.code):
            log.info("gpu_not_open", condition=refused.text, detail=refused.detail)
        self._refused = refused
        self._is_open, self._has_facts = refused is None, False
        self._inventory_wanted = self._is_open
        self._retry_ns = now_ns + REOPEN_AFTER_NS
        self._told_ns = {}
        if self._is_open:
            self._states = {}  # faults of before are the driver's to report again

    def _keep_states(self) -> None:
        cards = [gpu.uuid for gpu in self.inventory.gpus]
        known = {*cards, *(part.uuid for gpu in self.inventory.gpus for part in gpu.slices)}
        self._holders = {uuid: held for uuid, held in self._holders.items() if uuid in known}
        states = {uuid: state for uuid, state in self._states.items() if uuid in known}
        self._states = dict.fromkeys(cards, GpuState()) | states
        self._mig_listed = {gpu.uuid: gpu.mig_enabled for gpu in self.inventory.gpus}

    def _swept(self, readings: Readings, now_ns: int, wall_ns: int) -> None:
        self._fresh = readings
        self._listen_wanted = True
        self._series = tuple(readings)
        self.last_good_ns = now_ns
        leases = self._leases()
        self._holders |= {uuid: (workload_id, now_ns) for uuid, workload_id in leases.items()}
        self._backend.leased(frozenset(leases))
        for health in self._backend.health():
            if health.mig_enabled is not None and health.mig_enabled is not self._mig_listed.get(health.uuid):
                self._is_listed_otherwise = True
            before = self._states.get(health.uuid, GpuState())
            after = availability.after_sweep(before, health, health.uuid in leases, now_ns)
            self._states[health.uuid] = after
            if after.is_in_doubt(now_ns):
                self._look_again_ns = now_ns + LOOK_AGAIN_NS
            if errors := availability.ecc_growth(before, health):
                found = GpuEvent(GpuEventKind.ECC_UNCORRECTED, health.uuid, errors, at_wall_ns=wall_ns)
                self._tell(found, leases, now_ns)
        if self._is_listed_otherwise:  # after the sweep: what is the matter with a card is told no later than its facts
            self._is_listed_otherwise, self._inventory_wanted = False, True

    def _heard(self, events: list[GpuEvent], now_ns: int, wall_ns: int) -> None:
        leases = self._leases() if events else {}
        for event in events:
            place = availability.stricken(event)
            self._states[place] = availability.after_event(self._states.get(place, GpuState()), event, now_ns)
            self._tell(replace(event, at_wall_ns=wall_ns), leases, now_ns)
            if event.kind is GpuEventKind.MIG_CHANGED:
                self._look_again_ns, self._is_listed_otherwise = now_ns, True

    def _tell(self, event: GpuEvent, leases: Mapping[str, str], now_ns: int) -> None:
        key = (event.where, event.kind, event.number if event.kind is GpuEventKind.XID else 0)
        if now_ns - self._told_ns.get(key, -REPEAT_NS) < REPEAT_NS:
            self.events_repeated += 1
            return
        if len(self._told_ns) >= EVENTS_MAX:
            self._told_ns.clear()
        self._told_ns[key] = now_ns
        holder = availability.holder(leases.get(event.where), self._holders.get(event.where), now_ns)
        self._events.append(availability.event_of(event, holder))
        excess = len(self._events) - EVENTS_MAX
        if excess > 0:
            del self._events[:excess]
            self.events_dropped += excess

    def _look_at_backend(self, now_ns: int) -> None:
        """The backend is idle now, so what it says of itself can be read from here."""
        self._reported = self._backend.conditions() if self._is_open else ()
        broken = next((one for one in self._reported if one.code in REOPEN and not one.subject), None)
        if self._is_open and broken is not None:
            self._shut(broken, now_ns)

    def _shut(self, why: Condition, now_ns: int) -> None:
        log.warning("gpu_closed", condition=why.text, detail=why.detail)
        self._close_wanted = True  # on its thread: a broken driver may hang in this as well
        self._is_open, self._refused, self._reported = False, why, ()
        self._retry_ns = now_ns + REOPEN_AFTER_NS
        self._states = {uuid: availability.stalled(state) for uuid, state in self._states.items()}

    async def close(self, deadline_s: float = 2.0) -> None:
        """Close the backend on its thread, unless a call hangs there; then the process's end closes it."""
        try:
            if self._call is None or self._call.task.done() or self.listens:
                async with asyncio.timeout(deadline_s):
                    await self._runner.call(self._backend.close)
        except TimeoutError:
            log.warning("gpu_close_timed_out")
        finally:  # in a cancelled task Python before 3.11.4 tells of a deadline as of a cancellation (gh-102780)
            self._runner.close()
