"""Admission to an Access for a service, its memory, its refusals, and questions to the Master."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.waiting import poll_async
from windrow_access.core.services import Refused, ServiceLimits, Visits, page
from windrow_access.service_asks import ServiceAsks
from windrow_proto.errors import DeadlineExceeded, NotFound, TooMany, Unavailable, WindrowError
from windrow_proto.ids import ClusterId
from windrow_proto.units import MILLISECOND, MINUTE, SECOND
from windrow_proto.v1 import services_pb2

CLUSTER = ClusterId(f"cluster_{'0123456789abcdef' * 2}")
ASKED = CLUSTER, 80


def test_connections_are_bounded_by_network_and_in_all() -> None:
    visits = Visits(ServiceLimits(connections_max=3, per_network_max=2))
    assert [visits.enter(network) for network in ("a", "a", "a", "b", "c")] == [True, True, False, True, False]
    visits.leave("a")
    assert visits.enter("c") and visits.open == 3


def test_questions_are_bounded_at_once_and_paced_by_network() -> None:
    visits = Visits(ServiceLimits(asks_max=3, asks_per_network_max=2, asks_per_s=1, asks_burst=3))
    visits.ask("a", 0)
    visits.ask("a", 0)
    with pytest.raises(TooMany):
        visits.ask("a", 0)
    visits.ask("b", 0)
    with pytest.raises(TooMany):
        visits.ask("c", 0)
    for network in ("a", "a", "b"):
        visits.asked(network)
    visits.ask("a", 0)
    visits.asked("a")
    with pytest.raises(TooMany) as refused:  # the burst is used up, though nothing is under way
        visits.ask("a", 0)
    assert refused.value.retry_after_ns == SECOND
    visits.ask("a", SECOND)


def test_networks_that_are_remembered_are_bounded() -> None:
    visits = Visits(ServiceLimits(networks_max=2))
    for number in range(10):
        visits.ask(f"network {number}", 0)
        visits.asked(f"network {number}")
    assert len(visits._buckets) <= 2


def test_what_was_refused_is_remembered_for_a_while_and_so_many_only() -> None:
    refused = Refused(ServiceLimits(refused_ns=5 * SECOND, refused_max=2))
    refused.note(ASKED, "not_found", 0)
    assert refused.code(ASKED, 5 * SECOND - 1) == "not_found"
    assert refused.code(ASKED, 5 * SECOND) == ""
    refused.note(ASKED, "conflict", 0)
    assert (refused.code(ASKED, SECOND - 1), refused.code(ASKED, SECOND)) == ("conflict", "")
    for code in ("too_many", "unavailable", "deadline_exceeded"):  # about who asks, or about now
        refused.note((CLUSTER, 81), code, 0)
        assert refused.code((CLUSTER, 81), 0) == ""
    refused.note((CLUSTER, 82), "not_found", 0)
    refused.note((CLUSTER, 83), "not_found", 0)
    assert refused.code(ASKED, 0) == ""


@pytest.mark.parametrize(
    ("code", "status", "retry"),
    [
        ("not_found", b"404 Not Found", None),
        ("conflict", b"503 Service Unavailable", b"1"),
        ("host_unreachable", b"503 Service Unavailable", b"10"),
        ("deadline_exceeded", b"503 Service Unavailable", b"10"),
        ("too_many", b"429 Too Many Requests", b"5"),
    ],
)
def test_a_page_says_what_is_in_the_way_and_when_to_come_back(code: str, status: bytes, retry: bytes | None) -> None:
    head, _, body = page(code, b"GET / HTTP/1.1\r\nHost: x").partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    headers = dict(line.lower().split(b": ", 1) for line in lines[1:])
    assert lines[0] == b"HTTP/1.1 " + status
    assert headers.get(b"retry-after") == retry
    assert (headers[b"connection"], int(headers[b"content-length"])) == (b"close", len(body))
    assert headers[b"content-type"].startswith(b"text/plain")


def test_a_page_is_html_for_who_takes_it_and_has_no_body_for_head() -> None:
    html = page("not_found", b"GET / HTTP/1.1\r\nAccept: text/html,application/xhtml+xml")
    assert b"text/html" in html and b"<h1>There is no service at this address.</h1>" in html
    waiting = page("conflict", b"GET / HTTP/1.1\r\nAccept: text/html")
    assert b"\r\nRefresh: 1\r\n" in waiting and b"Refresh" not in html + page("conflict", b"POST / HTTP/1.1")
    assert page("not_found", b"HEAD / HTTP/1.1").endswith(b"\r\n\r\n")
    assert b"retry-after: 30" in page("too_many", b"", 29 * SECOND + 1).lower()


class Said:
    """A trunk that keeps what is put on it."""

    def __init__(self) -> None:
        self.items: list[services_pb2.TrunkItem] = []

    def take(self, item: services_pb2.TrunkItem) -> bool:
        self.items.append(item)
        return True


async def test_who_goes_before_the_master_answers_leaves_word() -> None:
    said = Said()
    asks = ServiceAsks(said.take, MINUTE)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(asks.ask(*ASKED))
        await poll_async(lambda: said.items)
        asking.cancel()
    first, second = said.items
    assert (first.service_ask.cluster_id, first.service_ask.port) == ASKED
    assert second.service_left.ask == first.service_ask.ask


async def refused(asks: ServiceAsks, said: Said, answer: Callable[[int], None]) -> WindrowError:
    """Returns the outcome of a question that is answered so."""
    said.items.clear()
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(_error_of(asks.ask(*ASKED)))
        await poll_async(lambda: said.items)
        answer(said.items[0].service_ask.ask)
    return asking.result()


async def test_what_the_master_refuses_is_an_error_as_is_the_end_of_the_trunk() -> None:
    said = Said()
    asks = ServiceAsks(said.take, MINUTE)

    def answered(number: int, code: str) -> None:
        asks.answered(services_pb2.ServiceAnswer(ask=number, code=code, retry_after_ns=7))

    assert isinstance(await refused(asks, said, lambda number: answered(number, "not_found")), NotFound)
    busy = await refused(asks, said, lambda number: answered(number, "too_many"))
    assert isinstance(busy, TooMany) and busy.retry_after_ns == 7
    assert isinstance(await refused(asks, said, lambda number: asks.end()), Unavailable)
    with pytest.raises(Unavailable):
        await ServiceAsks(lambda item: False, MINUTE).ask(*ASKED)


async def test_a_question_without_its_answer_ends_in_time_and_leaves_word() -> None:
    said = Said()
    asks = ServiceAsks(said.take, 50 * MILLISECOND)

    def others(number: int) -> None:
        asks.answered(services_pb2.ServiceAnswer(ask=number + 1))

    assert isinstance(await refused(asks, said, others), DeadlineExceeded)
    assert said.items[-1].WhichOneof("what") == "service_left"


async def _error_of(asked: Awaitable[object]) -> WindrowError:
    try:
        await asked
    except WindrowError as error:
        return error
    raise AssertionError("it was answered")
