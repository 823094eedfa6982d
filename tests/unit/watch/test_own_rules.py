"""People's own rules: which are refused, what they are about, and when they would have fired."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from windrow_master.fleet.model import Host
from windrow_master.store.model import EventRow
from windrow_master.watch import rules
from windrow_master.watch.event_kinds import KINDS
from windrow_master.watch.model import OPERATORS
from windrow_master.watch.own_rules import (
    OwnRule,
    cause_of,
    check,
    devices,
    fits_event,
    replay_events,
    replay_metric,
)
from windrow_proto.conditions import Severity
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId, EventId, GpuUuid, HostId
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import MINUTE, SECOND

PAGE = Path(__file__).parents[3] / "docs" / "alerts.md"
METRIC = OwnRule(
    rule_id="alertrule_1",
    owner=OPERATORS,
    name="hot",
    metric="gpu_temperature_celsius",
    scope={},
    comparison=">",
    threshold=80.0,
    duration_ns=5 * MINUTE,
    severity=Severity.TICKET,
    created_at_ns=0,
    created_by="",
)
EVENT = replace(METRIC, metric=None, event_kind="job.failed", comparison=">=", threshold=2.0, duration_ns=MINUTE)


def row(at_ns: int, *subjects: str) -> EventRow:
    return EventRow(at_ns, EventId(str(at_ns)), at_ns, "job.failed", subjects, "train is Failed", "", {})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"event_kind": "job.failed"}, "metric"),
        ({"metric": None}, "metric"),
        ({"metric": "no_such_metric"}, "metric"),
        ({"metric": "gpu_energy_joules_total"}, "metric"),
        ({"scope": {"flavour": "x"}}, "scope"),
        ({"scope": {"<img src=x>": "x"}}, "scope"),
        ({"comparison": "~"}, "comparison"),
        ({"severity": Severity.INFO}, "severity"),
        ({"duration_ns": 0}, "duration_s"),
    ],
)
def test_a_rule_that_means_nothing_is_refused_by_its_field(changes: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check(replace(METRIC, **changes))  # type: ignore[arg-type]  # of any field
    assert refused.value.subject == field


@pytest.mark.parametrize("changes", [{"threshold": 0.0}, {"threshold": 1.5}, {"threshold": 1e6}, {"comparison": "<"}])
def test_of_events_a_small_whole_number_is_counted(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        check(replace(EVENT, **changes))  # type: ignore[arg-type]  # of any field
    check(EVENT)
    check(METRIC)


def test_a_metric_is_read_of_the_hosts_that_its_labels_and_its_owner_name() -> None:
    gpus = tuple(GpuFacts(GpuUuid(f"GPU-{number}"), number, "nvidia", "H100") for number in range(2))
    host = Host(
        HostId("host_1"), "gpu-7", AccountId("account_1"), False, 0, region="north", inventory=Inventory(gpus=gpus)
    )
    tiers = {"GPU-0": "h100/A", "GPU-1": "h100/B"}
    assert devices(METRIC, host, tiers) == ["GPU-0", "GPU-1"]
    assert devices(replace(METRIC, scope={"tier": "h100/B"}), host, tiers) == ["GPU-1"]
    assert devices(replace(METRIC, scope={"host": "gpu-7", "gpu": "GPU-0"}), host, tiers) == ["GPU-0"]
    assert devices(replace(METRIC, scope={"region": "south"}), host, tiers) == []
    assert devices(replace(METRIC, owner="account_2"), host, tiers) == []
    assert devices(replace(METRIC, owner="account_1"), host, tiers) == ["GPU-0", "GPU-1"]


def test_an_accounts_rule_counts_what_concerns_it_alone() -> None:
    theirs = replace(EVENT, owner="account_1", scope={"job": "job_1"})
    assert fits_event(theirs, row(1, "job_1", "account_1"), frozenset({"account_1"}))
    assert not fits_event(theirs, row(1, "job_1", "account_2"), frozenset({"account_2"}))
    assert not fits_event(theirs, row(1, "job_2", "account_1"), frozenset({"account_1"}))


def test_one_event_is_about_the_thing_of_its_kind_and_many_about_the_label_or_the_owner() -> None:
    one, failed = replace(EVENT, threshold=1.0), row(1, "account_1", "cluster_1", "host_1", "job_1")
    assert [cause_of(one, replace(failed, kind=kind)) for kind in ("job.failed", "gpu.xid", "cluster.failed")] == [
        *("job_1", "host_1", "cluster_1"),
    ]
    assert cause_of(EVENT, failed) == OPERATORS
    assert cause_of(replace(EVENT, scope={"host": "host_1"}), failed) == "host_1"


def test_every_kind_of_event_that_is_written_may_be_named() -> None:
    code = "".join(path.read_text() for path in (Path(__file__).parents[3] / "master").rglob("*.py"))
    written = re.findall(r'\.(?:event\(|tell\([^)]*?)\s*"([a-z_]+\.[a-z_]+)"', code)
    assert len(written) > 50
    assert set(written) <= KINDS


def test_events_that_come_often_enough_would_have_fired() -> None:
    times = [0, 50, 200, 5_000, 5_010]
    found = replay_events(EVENT, [row(at * SECOND) for at in times], 10_000 * SECOND)
    assert [one.from_ns // SECOND for one in found] == [50, 5_010]


def test_a_metric_that_holds_for_the_whole_duration_would_have_fired() -> None:
    values = [70, 81, 82, None, 83, 84, 85, 86, 79, 90]
    points = [(number * MINUTE, value) for number, value in enumerate(values)]
    (found,) = replay_metric(METRIC, "gpu-7", points, MINUTE)
    assert (found.from_ns, found.until_ns) == (6 * MINUTE, 8 * MINUTE)
    assert replay_metric(METRIC, "gpu-7", points[:7], MINUTE)[0].until_ns is None


def test_the_page_has_the_table_of_built_in_rules() -> None:
    assert rules.page() in PAGE.read_text(), "put what rules.page() returns into docs/alerts.md"
