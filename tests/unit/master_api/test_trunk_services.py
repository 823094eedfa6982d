"""An Access asks the Master for services: what it is answered, what it may ask at once, and what ends a question."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.waiting import poll_async
from windrow_master.link import services
from windrow_master.link.accesses import Accesses
from windrow_master.link.services import ServiceAsks
from windrow_master.link.wire import Trunk
from windrow_master.network.nearest_access import TunnelPlace
from windrow_proto.clock import SystemClock
from windrow_proto.errors import Conflict, TooMany
from windrow_proto.ids import ClusterId, mint
from windrow_proto.renter_end import RenterTicket
from windrow_proto.units import SECOND
from windrow_proto.v1 import services_pb2

CLUSTER = ClusterId(mint("cluster", 1, bytes(10)))
Open = Callable[[ClusterId, int], Awaitable[RenterTicket]]


class Line:
    """The near end of a trunk that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[services_pb2.TrunkItem] = []

    async def send(self, batch: services_pb2.TrunkBatch) -> None:
        self.sent += batch.items

    async def receive(self) -> services_pb2.TrunkBatch:
        return await asyncio.Future()

    async def close(self) -> None:
        """Nothing is held."""


def trunk_of(access_id: str, service_address: str, line: Line | None = None) -> Trunk:
    hello = services_pb2.TrunkHello(access_id=access_id, service_address=service_address)
    return Trunk(line or Line(), hello, "127.0.0.1:1", 1)


def asking(number: int, cluster_id: str = CLUSTER, port: int = 80) -> services_pb2.TrunkItem:
    return services_pb2.TrunkItem(service_ask=services_pb2.ServiceAsk(ask=number, cluster_id=cluster_id, port=port))


async def answers(open_service: Open, *items: services_pb2.TrunkItem) -> list[services_pb2.ServiceAnswer]:
    """Returns the answers that come down for these, one for each ask."""
    line = Line()
    trunk = trunk_of("access_a", "", line)
    asks = ServiceAsks(open_service)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(trunk.write())
        for item in items:
            asks.take(trunk, item, tasks)
        await poll_async(lambda: len(line.sent) == len(items))
        assert trunk.asks == {}
        writing.cancel()
    return [item.service_answer for item in line.sent]


async def test_a_tunnel_is_answered_with_where_and_with_what_to_come() -> None:
    async def opened(cluster_id: ClusterId, port: int) -> RenterTicket:
        assert (cluster_id, port) == (CLUSTER, 80)
        return RenterTicket("relay.example:7643", "the grant", b"", b"the key", b"the secret")

    (answer,) = await answers(opened, asking(7))
    assert (answer.ask, answer.code) == (7, "")
    assert (answer.tunnel_address, answer.grant) == ("relay.example:7643", "the grant")
    assert (answer.host_pem, answer.secret) == ("the key", b"the secret")


async def test_a_refusal_is_a_code_and_none_of_its_words() -> None:
    async def busy(cluster_id: ClusterId, port: int) -> RenterTicket:
        raise TooMany("of a renter", retry_after_ns=SECOND)

    async def idle(cluster_id: ClusterId, port: int) -> RenterTicket:
        raise Conflict("secret-host did not open it", subject="host_1")

    (answer,) = await answers(busy, asking(1))
    assert (answer.code, answer.retry_after_ns) == ("too_many", SECOND)
    (answer,) = await answers(idle, asking(1))
    assert answer == services_pb2.ServiceAnswer(ask=1, code="conflict")


async def test_a_question_at_which_the_master_crashes_is_refused_and_the_next_is_answered() -> None:
    async def crash(cluster_id: ClusterId, port: int) -> RenterTicket:
        if port == 80:
            raise ZeroDivisionError("what nobody has thought of")
        raise Conflict

    found = await answers(crash, asking(1), asking(2, port=81))
    assert sorted((one.ask, one.code) for one in found) == [(1, "unavailable"), (2, "conflict")]


async def test_what_is_no_cluster_or_port_is_refused_before_anybody_is_asked() -> None:
    async def never(cluster_id: ClusterId, port: int) -> RenterTicket:
        raise AssertionError("asked")

    odd = (asking(1, "cluster_x"), asking(2, "x" * 5_000), asking(3, port=0), asking(4, port=70_000))
    assert [one.code for one in await answers(never, *odd)] == ["not_found"] * 4


async def test_questions_of_one_trunk_are_bounded_and_who_leaves_ends_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "ASKS_MAX", 2)
    ended: list[int] = []

    async def slow(cluster_id: ClusterId, port: int) -> RenterTicket:
        try:
            return await asyncio.Future()
        finally:
            ended.append(port)

    line = Line()
    trunk = trunk_of("access_a", "", line)
    asks = ServiceAsks(slow)
    async with asyncio.TaskGroup() as tasks:
        writing = tasks.create_task(trunk.write())
        for number in (1, 2, 3):
            asks.take(trunk, asking(number, port=number), tasks)
        await poll_async(lambda: line.sent)
        assert [(one.service_answer.ask, one.service_answer.code) for one in line.sent] == [(3, "too_many")]
        for number in (1, 2, 9):
            left = services_pb2.ServiceLeft(ask=number)
            asks.take(trunk, services_pb2.TrunkItem(service_left=left), tasks)
        await poll_async(lambda: ended == [1, 2])
        assert trunk.asks == {} and len(line.sent) == 1
        writing.cancel()


def test_what_accesses_say_of_bugs_that_they_met_is_one_condition() -> None:
    trunks = {trunk_of(f"access_{number}", ""): None for number in range(9)}
    accesses = Accesses(trunks, SystemClock(), lambda access_id: False)
    assert list(accesses.conditions()) == []
    for number, trunk in enumerate(list(trunks)[1:8], 1):
        trunk.load = services_pb2.LoadReport(
            bugs=services_pb2.BugsMet(count=number, last=f"turn_crashed\n{'x' * 1_000}", last_ns=number)
        )
    ((code, detail, since_ns),) = accesses.conditions()
    assert (code, since_ns) == ("access.bug_met", 7)
    next(reversed(trunks)).load = services_pb2.LoadReport(bugs=services_pb2.BugsMet(last_ns=2**63 - 1))
    assert [since_ns <= SystemClock().wall_ns() for _, _, since_ns in accesses.conditions()] == [True]
    assert "access_1 1 times" in detail and "access_5 5 times" in detail and "and 2 more" in detail
    assert "access_0" not in detail and "\n" not in detail and len(detail) < 1_000


def test_a_services_place_is_of_the_nearest_access_else_of_the_first_that_has_one() -> None:
    told = {"access_a": "", "access_b": "svc.example.org:443", "access_c": "svc.example.org:7743"}
    trunks = {trunk_of(access_id, place): None for access_id, place in told.items()}
    accesses = Accesses(trunks, SystemClock(), lambda access_id: False)
    assert accesses.service_place("access_c") == "svc.example.org:7743"
    assert accesses.service_place("access_a") == accesses.service_place("") == "svc.example.org:443"
    assert Accesses({}, SystemClock(), lambda access_id: False).service_place("access_c") == ""


def test_an_access_that_says_something_odd_of_its_services_has_none() -> None:
    for odd in ("javascript:alert(1)", "svc.example.org:443/../", "a b.c:1", "x" * 5_000 + ".org:1"):
        assert trunk_of("access_a", odd).service_place == ""


def test_tunnels_to_other_hosts_may_go_by_the_least_loaded_worker_of_each_access_that_takes_them() -> None:
    def attached(access_id: str, worker: int, load_permille: int = 0, *, takes: bool = True, port: int = 1) -> Trunk:
        address = f"{access_id}:{port}" if port else ""
        hello = services_pb2.TrunkHello(
            access_id=access_id,
            worker=worker,
            tunnel_address=address,
            tunnel_host_address=address,
            tunnels_of_others=takes,
        )
        trunk = Trunk(Line(), hello, "", 1)
        trunk.load = services_pb2.LoadReport(load_permille=load_permille)
        return trunk

    busy, calm = attached("access_a", 0, 300, port=7), attached("access_a", 1, 200, port=8)
    unable = [attached("access_old", 0, takes=False), attached("access_mute", 0, port=0)]
    full, drained = attached("access_full", 0, 1000), attached("access_drained", 0)
    trunks = dict.fromkeys([busy, calm, *unable, full, drained])
    accesses = Accesses(trunks, SystemClock(), lambda access_id: access_id == "access_drained")
    assert accesses.tunnel_places() == (TunnelPlace("access_a", "access_a/1", "access_a:8", "access_a:8", 200),)
