"""Events: how much each matters, the severe ones alone, a span of time, and names in the place of ids."""

from dataclasses import replace

import pytest

from tests.unit.master_api.conftest import Api
from tests.unit.master_api.test_fleet_routes import HOST, fleet, ok  # noqa: F401  # fleet is a fixture
from windrow_master.api.audit_texts import action_title
from windrow_master.api.event_names import as_seen
from windrow_master.api.event_severity import EventSeverity, is_at_least, severity_of
from windrow_master.api.event_texts import text_of, title_of
from windrow_master.identity.model import Principal, Role
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import EventId, TokenId
from windrow_proto.units import HOUR, time_text


@pytest.mark.parametrize(
    ("action", "title"),
    [
        ("join_token.make", "Join token made"),
        ("host.drain", "Host drained"),
        ("host.lost", "Host offline"),
        ("session.begin", "Signed in"),
        ("of_newer.let_go", "Of newer let go"),
    ],
)
def test_an_action_of_the_audit_log_reads_as_words(action: str, title: str) -> None:
    assert action_title(action) == title


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


HOST_ID, OTHER = f"host_{'0' * 32}", f"cluster_{'a' * 32}"
CARD = "GPU-8f3c1c2e-0000-4000-8000-000000000001"


@pytest.mark.parametrize(
    ("kind", "subjects", "fields", "title"),
    [
        ("condition.raised", (), {"code": f"gpu.hot:{CARD}"}, "Too hot"),
        ("condition.cleared", (), {"code": f"gpu.hot:{CARD}"}, "Solved: Too hot"),
        ("condition.raised", (), {"code": "gpu.of_a_newer_agent"}, "of a newer agent"),
        ("gpu.lost", (), {}, "GPU lost"),
        ("host.suspect", (HOST_ID,), {}, "Host not answering"),
        ("access.draining", (), {}, "Relay draining"),
        ("cluster.running", (OTHER, HOST_ID), {}, "Machine running"),
        ("cluster.running", (OTHER, HOST_ID, f"host_{'1' * 32}"), {}, "Cluster running"),
        ("join_token.made", (), {}, "Join token made"),
        ("job.no_place_elsewhere", (OTHER,), {}, "No place elsewhere for a job"),
        ("job.try_failed", (OTHER,), {}, "A place elsewhere was not had"),
    ],
)
def test_an_event_is_called_by_the_words_of_the_glossary(
    kind: str, subjects: tuple[str, ...], fields: dict[str, str], title: str
) -> None:
    assert title_of(kind, subjects, fields) == title


@pytest.mark.parametrize(
    ("kind", "text", "fields", "shown"),
    [
        ("workload.lost", "workload.lost", {}, "The work is gone from its host"),
        ("workload.exited", "", {"exit_code": "1"}, "The work ended with exit code 1"),
        ("condition.cleared", f"{HOST_ID}: gpu.hot:{CARD} is over", {}, "rack-7: Too hot is over"),
        ("slot.not_clean", f"{HOST_ID}/cpu/2: out of order", {}, "rack-7 CPU share 2: out of order"),
        ("host.verify_failed", f"{CARD}: it is slow", {}, "rack-7 · GPU 3: it is slow"),
        ("host.moved", f"It left access_{'b' * 32}", {}, "It left a relay"),
        ("cluster.lost", f"{OTHER} ended", {}, "A machine ended"),
    ],
)  # fmt: skip
def test_a_text_has_names_and_words_in_the_place_of_ids_and_codes(
    kind: str, text: str, fields: dict[str, str], shown: str
) -> None:
    assert text_of(kind, text, fields, {HOST_ID: "rack-7", CARD: "rack-7 · GPU 3"}) == shown


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


async def test_the_owner_of_a_host_reads_no_name_and_no_id_of_who_rents_it(api: Api, fleet) -> None:  # noqa: F811
    owner = api.services.fleet.entry(HOST).host.owner_account
    stranger = (OTHER, f"account_{'b' * 32}", HOST)
    fields = {"cluster": OTHER, "xid": "48"}
    rows = [
        EventRow(
            1, EventId("event_1"), 1, "cluster.running", stranger, "acme-payroll starts", "user/user_rosa", fields
        ),
        EventRow(2, EventId("event_2"), 1, "gpu.xid", stranger, "XID 48", f"host/{HOST}", fields),
        EventRow(3, EventId("event_3"), 1, "host.listed", (HOST,), "listed", "user/user_otto", {}),
    ]
    reader = Principal(owner, "pia", frozenset({Role.PROVIDER}), TokenId("token_1"), "t", 2**62)

    def read(uow: UnitOfWork) -> list[EventRow]:
        return [as_seen(uow, reader, row) for row in rows]

    running, xid, listed = await api.services.store.read(read)
    assert (running.text, running.subjects, running.actor, running.fields) == (
        f"Machine running: {HOST}",
        (HOST,),
        "",
        {},
    )
    assert (xid.text, xid.subjects, xid.actor, xid.fields) == ("XID 48", (HOST,), f"host/{HOST}", {"xid": "48"})
    assert listed is rows[2]

    overseer = replace(reader, roles=frozenset({Role.AUDITOR}))
    assert await api.services.store.read(lambda uow: as_seen(uow, overseer, rows[0])) is rows[0]
