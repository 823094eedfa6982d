"""Events: how much each matters, the severe ones alone, a span of time, and names in the place of ids."""

import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.test_fleet_routes import HOST, fleet, ok  # noqa: F401  # fleet is a fixture
from windrow_master.api.event_severity import EventSeverity, is_at_least, severity_of
from windrow_proto.units import HOUR, time_text


@pytest.mark.parametrize(
    ("kind", "fields", "severity"),
    [
        ("bandwidth.measured", {}, "info"),
        ("command.done", {}, "info"),
        ("cluster.running", {}, "info"),
        ("cluster.failed", {}, "error"),
        ("host.listed", {}, "notice"),
        ("host.lost", {}, "error"),
        ("gpu.xid", {"blame": "tenant"}, "warning"),
        ("gpu.xid", {"blame": "host"}, "error"),
        ("condition.raised", {"code": "gpu.hot:GPU-1"}, "warning"),
        ("condition.raised", {"code": "gpu.host_fault:GPU-1"}, "error"),
        ("condition.raised", {"code": "gpu.initialising"}, "info"),
        ("condition.cleared", {"code": "gpu.host_fault:GPU-1"}, "notice"),
        ("condition.raised", {"code": "of.a.newer.agent"}, "warning"),
        ("of.a.newer.master", {}, "notice"),
    ],
)
def test_an_event_says_how_much_it_matters(kind: str, fields: dict[str, str], severity: str) -> None:
    assert severity_of(kind, fields) == severity


def test_what_is_more_severe_than_wanted_is_wanted() -> None:
    found = [one for one in EventSeverity if is_at_least(one, "warning")]
    assert found == [EventSeverity.WARNING, EventSeverity.ERROR]


async def _note(api: Api, kind: str, *subjects: str) -> None:
    await api.services.store.write(lambda uow: uow.event(kind, subjects, f"{subjects[0]} {kind}"), name="note")


async def test_events_are_narrowed_by_severity_and_time_and_name_what_they_are_about(api: Api, fleet) -> None:  # noqa: F811
    began = time_text(api.clock.wall_ns() + HOUR)
    api.clock.advance(2 * HOUR)
    for kind in ("bandwidth.measured", "host.lost", "host.listed"):
        await _note(api, kind, HOST)
    ended = time_text(api.clock.wall_ns() + HOUR)
    api.clock.advance(2 * HOUR)
    await _note(api, "host.lost", HOST)

    async def kinds(query: str) -> list[str]:
        return [one["kind"] for one in (await ok(await api.client.get(f"/api/v1/events?{query}")))["items"]]

    assert await kinds(f"since={began}&until={ended}") == ["host.listed", "host.lost", "bandwidth.measured"]
    assert await kinds(f"since={began}&severity=notice") == ["host.lost", "host.listed", "host.lost"]
    assert await kinds(f"since={ended}&severity=error") == ["host.lost"]
    told = (await ok(await api.client.get("/api/v1/events?limit=1")))["items"][0]
    name = (await ok(await api.client.get(f"/api/v1/hosts/{HOST}")))["name"]
    assert (told["severity"], told["names"]) == ("error", {HOST: name})
    assert (await api.client.get("/api/v1/events?since=yesterday")).status_code == 422
