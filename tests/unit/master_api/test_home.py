"""The home pages' answers: each kind of trouble once, GPUs by state over time, own hosts."""

from dataclasses import replace

import pytest

from tests.unit.master_api.test_overview import HOST, OWNER, cards, entry, host, pay, slot
from windrow_master.api.attention import SUBJECTS_MAX, attention
from windrow_master.fleet.availability import Availability
from windrow_master.fleet.model import AdminState, Condition, LinkState, SlotState
from windrow_master.fleet.use_history_repository import KEPT_NS, SHORT_NS, UseHistoryRepository, counted
from windrow_master.identity.model import Role
from windrow_master.market.model import TransferKind
from windrow_proto.conditions import ConditionCode, Severity
from windrow_proto.ids import AccountId, HostId
from windrow_proto.units import DAY, HOUR, MICROCENTS_PER_UNIT, MINUTE

NONE = dict.fromkeys(Availability, 0)


def hot(number):
    return Condition(f"{ConditionCode.GPU_HOT}:GPU-{number}", "it is hot", 5)


def titles(*entries, **more):
    return [group.title for group in attention(entries, **({"no_relay": False} | more))]


def test_troubles_of_one_kind_are_one_line_with_those_that_are_rented_first():
    running = slot(1, state=SlotState.RUNNING)
    found = attention([entry(host(conditions=(hot(0), hot(1))), slot(0), running)], no_relay=False)
    assert [group.title for group in found] == ["2 GPUs too hot or slowed down"]
    assert [(one.gpu, one.rented, one.since_ns) for one in found[0].shown] == [(1, True, 5), (0, False, 5)]


def test_of_a_card_with_two_faults_the_graver_ones_remedy_is_told():
    ill = tuple(Condition(f"{code}:GPU-1", "", 5) for code in (ConditionCode.GPU_HOST_FAULT, ConditionCode.GPU_LOST))
    (found,) = attention([entry(host(conditions=ill), slot(1, state=SlotState.FAULTED))], no_relay=False)
    assert (found.title, found.remedy) == ("1 GPU faulty", ConditionCode.GPU_LOST.remedy)


def test_what_is_most_pressing_comes_first():
    full = Condition(ConditionCode.AGENT_DISK_FULL, "no room", 1)
    sick = entry(host(conditions=(full, hot(1))), slot(0, state=SlotState.FAULTED), slot(1))
    silent = entry(host(host_id=HostId("host_2"), link_state=LinkState.LOST, last_seen_ns=7), slot(2))
    stated = [(ConditionCode.MASTER_DISK_FULL, "a disk is full", 3), (ConditionCode.BUS_ALONE, "alone", 4)]
    told = titles(sick, silent, stated=stated, gone=[("access_1", "north")], no_relay=True)
    assert told[0] == "No relay is connected"
    assert told[1].startswith("A disk of the Master is full")
    assert told[2:-1] == [
        *("1 GPU faulty", "1 GPU too hot or slowed down", "1 host not answering", "1 relay down"),
        "1 host with a full disk",
    ]
    assert told[-1].startswith("The bus reaches")


@pytest.mark.parametrize(
    "changes",
    [
        {"admin_state": AdminState.RETIRED},
        {"admin_state": AdminState.DRAINING},
        {"link_state": LinkState.UNKNOWN},
        {"conditions": (Condition(ConditionCode.GPU_NONE, "", 1),)},
    ],
)
def test_what_people_decided_what_is_not_heard_yet_and_what_only_explains_needs_nobody(changes):
    assert titles(entry(host(**changes), slot(0), slot(1))) == []


def test_many_are_counted_and_some_named():
    hosts = [host(host_id=HostId(f"host_{n}"), admin_state=AdminState.QUARANTINED) for n in range(9)]
    (group,) = attention([entry(one) for one in hosts], no_relay=False)
    assert (group.title, len(group.shown), group.severity) == ("9 hosts in quarantine", SUBJECTS_MAX, Severity.TICKET)


def test_gpus_are_not_counted_before_every_host_was_heard():
    heard = entry(host(), slot(0), slot(1, state=SlotState.RUNNING))
    assert counted([heard]) == NONE | {Availability.IDLE: 1, Availability.RENTED: 1}
    assert counted([heard, entry(host(link_state=LinkState.UNKNOWN))]) is None
    assert counted([entry(host(inventory=None))]) is None


async def test_gpus_by_state_are_means_of_their_span_and_old_spans_go(api):
    start_ns = api.clock.wall_ns() // HOUR * HOUR
    looks = ((0, 4), (MINUTE, 6), (SHORT_NS, 8))

    def write(uow):
        uow[UseHistoryRepository].add(NONE | {Availability.IDLE: 1}, start_ns - 2 * KEPT_NS[HOUR])
        for after_ns, rented in looks:
            uow[UseHistoryRepository].add(NONE | {Availability.RENTED: rented}, start_ns + after_ns)
        return len(uow[UseHistoryRepository].since(HOUR, 0))

    assert await api.services.store.write(write, name="test") == 1
    day = (await api.client.get("/api/v1/overview/history")).json()
    assert (day["step_s"], [point["rented"] for point in day["points"]]) == (300, [5, 8])
    month = (await api.client.get("/api/v1/overview/history?span=month")).json()
    assert (month["step_s"], [point["rented"] for point in month["points"]]) == (3600, [6])
    assert (await api.client.get("/api/v1/overview/history?span=year")).status_code == 422


async def test_the_fleets_loop_counts_each_minute(api):
    fleet = api.services.fleet
    fleet.view.put(host(inventory=cards(0)), [slot(0)])
    await fleet._count_uses()
    points = await api.services.store.read(lambda uow: uow[UseHistoryRepository].since(SHORT_NS, 0))
    assert [point.counts[Availability.IDLE] for point in points] == [1]


async def test_a_provider_is_told_of_its_own_hosts_troubles_and_reasons(api):
    own = api.services.identity.first_account().id
    mine = host(owner_account=own, conditions=(hot(0),))
    graded = replace(slot(1), tier_reasons=("C: memory speed not measured yet",))
    api.services.fleet.view.put(mine, [slot(0, unavailable="it is hot"), graded])
    stranger = host(host_id=HostId("host_2"), owner_account=AccountId("account_x"), conditions=(hot(1),))
    api.services.fleet.view.put(stranger, [slot(1)])
    told = (await api.client.get("/api/v1/overview/hosts")).json()
    assert [(one["id"], one["headline"]) for one in told["items"]] == [(HOST, "degraded")]
    assert told["gpus"]["total"] == 2
    assert [one["words"] for one in told["grades"]] == ["memory speed not measured yet"]
    assert any("Nobody rented" in one["words"] for one in told["unrented"])
    assert not any(one["words"].startswith("Grade") for one in told["unrented"])
    all_of_it = (await api.client.get("/api/v1/overview/attention")).json()["items"]
    hers = (await api.client.get("/api/v1/overview/attention?own=true")).json()["items"]
    assert [next(one["count"] for one in items if one["kind"] == "hot") for items in (all_of_it, hers)] == [2, 1]


async def test_revenue_of_ones_own_is_asked_for_and_the_month_counts(api):
    await pay(api, 1, 2 * MICROCENTS_PER_UNIT)
    await pay(api, 2, 1 * MICROCENTS_PER_UNIT, TransferKind.FEE, "platform:fees")
    await pay(api, 3, 4 * MICROCENTS_PER_UNIT, age_ns=20 * DAY)
    everybody = (await api.client.get("/api/v1/overview")).json()["revenue"]
    own = (await api.client.get("/api/v1/overview?own=true")).json()["revenue"]
    assert (float(everybody["last_30_days"]), everybody["scope"]) == (7, "all")
    assert (float(own["last_30_days"]), own["scope"]) == (6, "own")
    assert float(own["last_7_days"]) == 2
    assert Role.OPERATOR in api.services.identity.first_account().roles
    assert api.services.identity.first_account().id != OWNER
