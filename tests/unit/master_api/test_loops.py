"""The Master's loops for what hosts and events bring: a bug that one turn meets does not end those after it."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from tests.master_support import ManualClock
from windrow_master.accesses.failover_test.model import Phase
from windrow_master.accesses.failover_test.service import TrialService
from windrow_master.api.event_tail import EventTail
from windrow_master.link.certificates import Certificates
from windrow_master.link.downlink import Downlink, HubFigures
from windrow_master.link.hub import BAD_PROOFS_MAX, LinkHub
from windrow_master.telemetry.service import TelemetryService
from windrow_proto.errors import LinkClosed
from windrow_proto.ids import CommandId, HostId
from windrow_proto.v1 import link_pb2

HOST, OTHER = HostId("host_1"), HostId("host_2")


class Met:
    """Work that meets a bug the first time, and tells when it is done again."""

    def __init__(self, after: Callable[[], object] = lambda: None) -> None:
        """after: what brings the next turn about."""
        self.after, self.asked, self.is_done = after, list[Any](), asyncio.Event()

    async def __call__(self, *asked: Any, **_: Any) -> Any:
        self.asked.append(asked)
        if len(self.asked) == 1:
            self.after()
            raise ZeroDivisionError("of one row")
        self.is_done.set()
        return {}


async def goes_on(work: Coroutine[Any, Any, None], met: Met) -> None:
    """Run a loop until it does its work again."""
    async with asyncio.TaskGroup() as group:
        running = group.create_task(work)
        await met.is_done.wait()
        running.cancel()


def downlink(renewals: Any, fleet: Any = None) -> Downlink:
    return Downlink(fleet, fleet, ManualClock(), renewals, HubFigures(), {})


async def test_leases_are_renewed_after_a_turn_that_met_a_bug() -> None:
    met = Met()
    await goes_on(downlink(met).renew(), met)


async def test_what_was_sent_is_noted_after_a_turn_that_met_a_bug() -> None:
    met = Met(lambda: down._has_sent.set())
    down = downlink(None, SimpleNamespace(mark_sent=met))
    down._sent = [CommandId("cmd_1")]
    down._has_sent.set()
    await goes_on(down.note_sent(), met)


async def test_the_newest_certificates_that_a_bug_kept_from_being_noted_are_noted_with_the_next_turn() -> None:
    met = Met()
    identities: Any = SimpleNamespace(generations_used=met)
    certificates = Certificates(identities, ManualClock())
    certificates._unnoted = {HOST: 2}
    await goes_on(certificates.note(), met)
    assert met.asked == [({HOST: 2},), ({HOST: 2},)]


async def test_events_are_told_after_a_look_that_met_a_bug() -> None:
    met = Met(lambda: tail._wanted.set())
    store: Any = SimpleNamespace(read_now=lambda look: (), on_event=lambda listener: None, read=met)
    bus: Any = SimpleNamespace(listen=lambda kind, listener: None, health=SimpleNamespace(problem=None))
    tail = EventTail(store, bus, SimpleNamespace())  # type: ignore[arg-type] # nobody listens
    tail._wanted.set()
    await goes_on(tail.run(), met)


async def test_house_is_kept_of_telemetry_after_a_turn_that_met_a_bug() -> None:
    met = Met()
    kept: Any = SimpleNamespace(_clock=ManualClock(), views=(), tell_events=met)
    kept._watched, kept.log = (
        SimpleNamespace(lapsed=lambda now_ns: ()),
        SimpleNamespace(run_retention=lambda cursors: None),
    )
    await goes_on(TelemetryService._run_retention(kept), met)


async def test_a_trial_that_crashes_is_unfinished_and_the_next_one_is_carried_out() -> None:
    def ask(trial: Any) -> None:
        trials._running = trial
        trials._asked.set()

    first, second = (SimpleNamespace(access_id=name, phase=Phase.RUNNING, problem="") for name in ("acc_1", "acc_2"))
    met = Met()
    trials: Any = SimpleNamespace(_asked=asyncio.Event(), _watch=met, _clock=ManualClock())
    ask(first)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(TrialService.run(trials))
        while trials._running is not None:
            await asyncio.sleep(0)
        ask(second)
        await met.is_done.wait()
        running.cancel()
    assert (first.phase, first.problem) == (Phase.UNFINISHED, "It could not be counted: the Master failed.")


async def test_a_host_whose_route_crashes_with_time_loses_it_and_the_others_are_looked_at() -> None:
    def route(host_id: HostId, keep_time: Callable[[int], None]) -> Any:
        opening = SimpleNamespace(not_after_ns=2**62)
        facts = {"is_open": True, "is_second": False, "commands_sent": {}}
        return SimpleNamespace(host_id=host_id, opening=opening, keep_time=keep_time, **facts)

    def crash(now_ns: int) -> None:
        raise ZeroDivisionError("of one route")

    def full(now_ns: int) -> None:
        raise LinkClosed("The Access does not take what is sent to it.")

    kept, ended = list[int](), list[HostId]()
    routes = {1: route(HOST, crash), 2: route(OTHER, full), 3: route(OTHER, kept.append)}
    trunk = SimpleNamespace(routes=routes)
    hub: Any = SimpleNamespace(_clock=ManualClock(), _trunks=[trunk], _maps=SimpleNamespace(tick=lambda: None))
    hub._end_crashed = lambda trunk, number, route: ended.append(route.host_id)
    await LinkHub._keep_time(hub)
    assert (ended, len(kept)) == ([HOST], 1)


async def test_an_answer_that_a_full_trunk_does_not_take_is_nobodys_bad_proof() -> None:
    def full(*_: Any) -> None:
        raise LinkClosed("The Access does not take what is sent to it.")

    figures, ended = SimpleNamespace(bad_proofs=0), list[Any]()
    facts = {"is_open": True, "figures": SimpleNamespace(bad_proofs=BAD_PROOFS_MAX)}
    route: Any = SimpleNamespace(hear=lambda frame: frame, **facts)
    hub: Any = SimpleNamespace(figures=figures, _hear=full, _end=ended.append, _end_crashed=ended.append)
    trunk: Any = SimpleNamespace()
    LinkHub._take_frame(hub, trunk, 1, route, link_pb2.Frame(), asyncio.TaskGroup())
    assert (figures.bad_proofs, ended) == (0, [])
