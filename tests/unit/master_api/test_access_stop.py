"""Stopping an Access as a test: who may, where, after which words; what is written down; and what the count says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.described import assert_described
from tests.unit.master_api.test_access_routes import attach  # noqa: F401  # the fixture
from tests.unit.master_api.test_fleet_routes import HOST, fleet  # noqa: F401  # the fixture
from tests.waiting import poll_async
from windrow_master.accesses.failover_test.service import TRIAL_NS
from windrow_master.api import access_routes
from windrow_master.fleet.presence import Route
from windrow_proto.errors import Conflict
from windrow_proto.ids import AccessId, BootId, HostId
from windrow_proto.intervals import Intervals
from windrow_proto.messages import Hello, LaneMarks, Record
from windrow_proto.model import FrameClass, Kind, Lane
from windrow_proto.samples import Sample, encode_batch
from windrow_proto.units import SECOND

PATH = "/api/v1/accesses/a/stop"
BOOT = BootId(b"b" * 16)


class Up:
    """`windrow up`, as the trial sees it: keeps a and b, and remembers whom it killed."""

    def __init__(self) -> None:
        self.killed: list[str] = []
        self.refusal: Conflict | None = None

    async def accesses(self) -> Mapping[str, str]:
        return {"a": "access-local-a", "b": "access-local-b"}

    async def kill(self, access_id: AccessId) -> int:
        if self.refusal is not None:
            raise self.refusal
        self.killed.append(access_id)
        return 4711


@pytest.fixture
def up(api: Api) -> Up:
    """This market is one for development."""
    up = Up()
    api.services.trials._supervisor = up
    return up


async def asked(api: Api, confirm: str = "access-local-a", status: int = 202, path: str = PATH) -> Any:
    found = await api.client.post(path, json={"confirm": confirm, "reason": "to see"})
    assert found.status_code == status, found.text
    return found.json()


async def shown(api: Api) -> Any:
    answer = await api.client.get(PATH)
    assert_described(answer, access_routes.StopOut)
    return answer.json()


async def sent(api: Api, *sequences: int) -> None:
    """These batches of the host arrive and are in the log."""
    for sequence in sequences:
        body = encode_batch([Sample(api.clock.wall_ns(), {("", 100): 5})])
        record = Record(BOOT, sequence, Kind.TELEMETRY, body)
        await api.services.telemetry.append(HOST, [(record, FrameClass.LIVE)])


def returned(api: Api, access_id: str, unacked: tuple[tuple[int, int], ...] = ()) -> None:
    """The host says hello through this Access."""
    marks = (LaneMarks(Lane.TELEMETRY, BOOT, unacked),) if unacked else ()
    hello = Hello(1, "0.1.0", b"", 1, 0, "", False, marks, 1)
    api.services.fleet.presence.opened(HOST, Route(access_id, "", "", BOOT))
    api.services.trials.on_hello(HOST, access_id, BOOT, hello.unacked, {})


@asynccontextmanager
async def running(api: Api) -> AsyncIterator[None]:
    """Trials are carried out meanwhile."""
    async with asyncio.TaskGroup() as tasks:
        work = tasks.create_task(api.services.trials.run())
        yield
        work.cancel()


@pytest.fixture
async def there(api: Api, fleet: Any, attach: Callable[..., None], up: Up) -> Up:  # noqa: F811
    """One host is connected through a and has sent three batches."""
    fleet.presence.opened(HOST, Route("a", "", "", BOOT))
    await sent(api, 1, 2, 3)
    api.clock.advance(SECOND)
    return up


async def test_outside_of_development_nothing_is_stopped_and_no_row_offers_it(api: Api, attach: Any) -> None:  # noqa: F811
    refused = await asked(api, status=409)
    assert "only where `windrow up` started the market" in refused["detail"]
    assert "windrow access drain" in refused["detail"]
    rows = (await api.client.get("/api/v1/accesses")).json()["items"]
    assert [row["stop_name"] for row in rows] == [None, None]
    assert (await api.client.get(PATH)).status_code == 404


async def test_in_development_each_row_says_by_which_name_it_is_stopped(api: Api, attach: Any, up: Up) -> None:  # noqa: F811
    rows = (await api.client.get("/api/v1/accesses")).json()["items"]
    assert [row["stop_name"] for row in rows] == ["access-local-a", "access-local-b"]


async def test_only_the_name_or_the_id_confirms(api: Api, there: Up) -> None:
    assert "confirm with its name: access-local-a" in (await asked(api, "access-local-b", 422))["detail"]
    assert "confirm" in (await asked(api, "", 422))["detail"]
    assert there.killed == []
    await asked(api, "a")
    assert there.killed == ["a"]


@pytest.mark.parametrize("others", [{}, {"b": 1000}])
async def test_the_last_one_that_serves_is_never_stopped(
    api: Api,
    attach: Any,  # noqa: F811
    up: Up,
    others: dict[str, int],
) -> None:
    attach(a=10, **others)
    refused = await asked(api, status=409)
    assert "No other relay could take its agents" in refused["detail"]
    assert up.killed == []


async def test_an_access_that_the_others_are_drained_beside_is_the_last_one(api: Api, attach: Any, up: Up) -> None:  # noqa: F811
    await api.client.post("/api/v1/accesses/b/drain", json={})
    await asked(api, status=409)
    assert up.killed == []


async def test_one_that_windrow_up_did_not_start_is_refused(api: Api, attach: Any, up: Up) -> None:  # noqa: F811
    attach(a=10, b=20, far=30)
    refused = await asked(api, "far", 409, "/api/v1/accesses/far/stop")
    assert "did not start this relay" in refused["detail"]


async def test_one_test_at_a_time_and_after_a_refusal_by_the_supervisor_the_next_may_begin(api: Api, there: Up) -> None:
    there.refusal = Conflict("access-local-a does not run at this moment.")
    assert "does not run" in (await asked(api, status=409))["detail"]
    there.refusal = None
    await asked(api)
    assert "still running" in (await asked(api, "access-local-b", 409, "/api/v1/accesses/b/stop"))["detail"]


async def test_a_test_where_every_agent_goes_on_elsewhere_ends_with_zero_lost(api: Api, there: Up) -> None:
    async with running(api):
        began = await asked(api)
        assert (began["phase"], began["agents"], began["back"], began["counted"]) == ("running", 1, 0, None)
        api.clock.advance(2 * SECOND)
        assert (await shown(api))["away_s"] == 2
        returned(api, "b", unacked=((4, 4),))
        assert ((await shown(api))["back"], (await shown(api))["elsewhere"]) == (1, 1)
        api.clock.advance(SECOND)
        await sent(api, 4)
        done = await poll_async(lambda: _finished(api), what="the test ends")
    counted = done["counted"]
    assert (done["phase"], done["away_s"], done["problem"]) == ("finished", 2, None)
    assert (counted["lost_samples"], counted["lost_evidence"], counted["given_up_batches"]) == (0, 0, 0)
    assert (counted["acked_batches"], counted["acked_samples"], counted["longest_gap_s"]) == (4, 4, 4)
    audit = (await api.client.get("/api/v1/audit?subject=a")).json()["items"]
    assert [(one["action"], one["reason"]) for one in audit] == [("access.stop", "to see")]
    events = (await api.client.get("/api/v1/events?subject=a")).json()["items"]
    assert [one["kind"] for one in events] == ["access.stop_tested", "access.stop_test"]
    assert "1 of 1 agents came back, 0 of 4 acknowledged samples were lost" in events[0]["text"]


async def test_a_sample_that_was_acknowledged_and_is_not_in_the_log_is_counted(api: Api, there: Up) -> None:
    async with running(api):
        await asked(api)
        # The agent lets go of the fourth as acknowledged; the mark says so, too; the log never had it.
        api.services.telemetry.forgive(HOST, BOOT, ((4, 4),))
        returned(api, "b")
        await sent(api, 5)
        done = await poll_async(lambda: _finished(api), what="the test ends")
    assert (done["counted"]["lost_batches"], done["counted"]["lost_samples"]) == (1, 1)
    events = (await api.client.get("/api/v1/events?subject=a")).json()["items"]
    assert "1 of 5 acknowledged samples were lost" in events[0]["text"]


async def test_a_test_whose_agents_do_not_come_back_ends_unfinished_and_says_so(api: Api, there: Up) -> None:
    async with running(api):
        await asked(api)
        api.clock.advance(TRIAL_NS)
        done = await poll_async(lambda: _finished(api), what="the test ends")
    assert (done["phase"], done["agents"], done["back"]) == ("unfinished", 1, 0)
    assert done["counted"]["lost_samples"] == 0
    assert done["away_s"] == TRIAL_NS / SECOND


async def _finished(api: Api) -> Any:
    found = await shown(api)
    return found if found["phase"] != "running" else None


async def test_hellos_of_others_and_absurd_ones_count_for_nothing(api: Api, there: Up) -> None:
    trials = api.services.trials
    hello = Hello(1, "0.1.0", b"", 1, 0, "", False, (), 1)
    trials.on_hello(HOST, "a", BOOT, hello.unacked, {})
    await asked(api)
    trials.on_hello(HostId("host_2"), "b", BOOT, hello.unacked, {})
    trial = trials.of("a")
    assert trial is not None
    backwards = Hello(1, "0.1.0", b"", 1, 0, "", False, (LaneMarks(Lane.TELEMETRY, BOOT, ((9, 3),)),), 1)
    trials.on_hello(HOST, "b", BOOT, backwards.unacked, {})
    assert trial.back() == 0
    for _ in range(20):
        returned(api, "b")
    assert len(trial.returns[HOST]) == 16
    assert trial.watched[HOST].samples == Intervals(((1, 3),))
