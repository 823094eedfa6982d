"""What each kind of event raises and clears, and for whom."""

from dataclasses import replace

import pytest

from tests.unit.clusters.made import cluster, workload
from tests.unit.jobs.test_decide import job
from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.messages import RankFailed
from windrow_master.clusters.model import Cluster, ClusterKind, ClusterPhase
from windrow_master.fleet.model import AdminState, Condition, Host
from windrow_master.jobs.model import Job, JobState
from windrow_master.store.model import EventRow
from windrow_master.watch import rules
from windrow_master.watch.model import OPERATORS, Clear, Raise, Signal
from windrow_master.watch.signals import Planned, rank_failed, signals_of
from windrow_proto.conditions import ConditionCode, Severity
from windrow_proto.ids import AccountId, EventId, GpuUuid, HostId
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import HOUR, MINUTE
from windrow_proto.xids import XIDS

NOW = 10**18
HOST = Host(HostId("host_1"), "gpu-7", AccountId("account_2"), False, 0, admin_state=AdminState.ACTIVE)
JOB = job("job_1", JobState.QUEUED)
CLUSTER = replace(cluster(ClusterPhase.RUNNING), started_at_ns=NOW)


class Known:
    """Facts by hand."""

    def __init__(self, host: Host = HOST, made: Cluster = CLUSTER, spread: tuple[str, str] | None = None) -> None:
        self._host, self._cluster, self._spread = host, made, spread

    def host(self, host_id: str) -> Host | None:
        return self._host if host_id == self._host.host_id else None

    def cluster(self, cluster_id: str) -> Cluster | None:
        return self._cluster if cluster_id else None

    def job(self, job_id: str) -> Job | None:
        return JOB if job_id else None

    def rental(self, cluster_id: str, host_id: str) -> str | None:
        return f"rental_of_{cluster_id}"

    def planned(self, window_id: str) -> Planned | None:
        return None

    def spread_over(self, host_id: str) -> tuple[str, str] | None:
        return self._spread


def read(kind: str, *subjects: str, facts: Known | None = None, actor: str = "", **fields: str) -> list[Signal]:
    row = EventRow(1, EventId("event_1"), NOW, kind, tuple(sorted(subjects)), "text", actor, fields)
    return list(signals_of(row, facts or Known()))


def raised(signals: list[Signal]) -> Raise:
    (one,) = [signal for signal in signals if isinstance(signal, Raise)]
    return one


def cleared(signals: list[Signal]) -> list[Clear]:
    return [signal for signal in signals if isinstance(signal, Clear)]


def test_a_condition_is_told_to_operators_and_the_hosts_owner_by_its_own_row() -> None:
    one = raised(read("condition.raised", "host_1", "GPU-1", code="gpu.hot:GPU-1"))
    assert (one.rule, one.cause, one.subject) == ("gpu.hot", "host_1", "GPU-1")
    assert (one.severity, one.remedy) == (ConditionCode.GPU_HOT.severity, ConditionCode.GPU_HOT.remedy)
    assert one.audiences == (OPERATORS, "account_2")
    assert one.held_by == (("host.lost", "host_1"),)
    over = read("condition.cleared", "host_1", "GPU-1", code="gpu.hot:GPU-1")
    assert over == [Clear("host_1", "gpu.hot", "GPU-1")]


def test_a_relay_that_keeps_messages_back_is_told_of_once_unless_it_is_down() -> None:
    one = raised(read("access.kept_back", "access_1", "host_1"))
    assert (one.rule, one.cause, one.audiences) == ("relay.one_sided", "access_1", (OPERATORS,))
    assert one.held_by == (("relay.down", "access_1"),) and one.lasts_ns == HOUR


@pytest.mark.parametrize("code", ["gpu.initialising", "of.another.version", ""])
def test_a_condition_for_information_alerts_nobody(code: str) -> None:
    assert read("condition.raised", "host_1", code=code) == []


@pytest.mark.parametrize("state", [AdminState.MAINTENANCE, AdminState.RETIRED, AdminState.QUARANTINED])
def test_a_host_that_people_took_out_alerts_nobody(state: AdminState) -> None:
    facts = Known(replace(HOST, admin_state=state))
    for kind in ("condition.raised", "host.lost", "host.changed"):
        assert not [one for one in read(kind, "host_1", facts=facts, code="gpu.hot:GPU-1", driver_to="1")
                    if isinstance(one, Raise)]  # fmt: skip
    assert cleared(read(f"host.{state}", "host_1", facts=facts)) == [Clear("host_1")]


def test_a_host_that_is_back_from_maintenance_tells_what_is_still_wrong() -> None:
    facts = Known(replace(HOST, conditions=(Condition("agent.disk_full", "It is full.", NOW),)))
    assert raised(read("host.active", "host_1", facts=facts)).rule == "agent.disk_full"


def test_hosts_of_one_job_have_its_cause_together() -> None:
    one = raised(read("condition.raised", "host_1", code="gpu.lost:GPU-1", facts=Known(spread=("job_1", "train"))))
    assert (one.wider, one.wider_name, one.wider_least) == ("job_1", "train", 3)


def test_a_fault_of_a_rented_gpu_is_a_page_that_names_card_and_rental() -> None:
    card = GpuFacts(GpuUuid("GPU-0123456789"), 3, "nvidia", "H100")
    facts = Known(replace(HOST, inventory=Inventory(gpus=(card,))))
    code = f"gpu.lost:{card.uuid}"
    one = raised(read("condition.raised", "host_1", card.uuid, "cluster_1", facts=facts, code=code))
    assert (one.severity, one.title) == (Severity.PAGE, "GPU lost: gpu-7, GPU 3")
    assert one.text == "text. The card is H100, GPU-01234567. It was rented: rental_of_cluster_1."
    assert CLUSTER.account_id not in one.text + "".join(one.audiences)
    assert raised(read("condition.raised", "host_1", card.uuid, facts=facts, code=code)).severity is Severity.TICKET


def test_a_fault_by_an_xid_has_the_remedy_of_that_xid() -> None:
    for xid, remedy in (("79", XIDS[79].remedy), ("", ConditionCode.GPU_HOST_FAULT.remedy)):
        assert raised(read("condition.raised", "host_1", code="gpu.host_fault:GPU-1", xid=xid)).remedy == remedy


def test_faults_of_one_card_are_told_together_and_a_drained_host_has_none() -> None:
    ill = tuple(Condition(code, "", NOW) for code in ("gpu.lost:GPU-1", "gpu.host_fault:GPU-1", "gpu.host_fault:GPU-2"))
    facts = Known(replace(HOST, conditions=ill))
    found = read("condition.raised", "host_1", code="gpu.host_fault:GPU-1", facts=facts)
    assert [(one.rule, one.subject, one.same[0]) for one in found if isinstance(one, Raise)] == [
        ("gpu.host_fault", "GPU-1", "gpu.lost"),
        ("gpu.lost", "GPU-1", "gpu.lost"),
    ]
    drained = Known(replace(HOST, conditions=ill, admin_state=AdminState.DRAINING))
    assert Clear("host_1", "gpu.lost") in read("host.draining", "host_1", facts=drained)
    assert read("host.draining", "host_1", facts=drained, actor="master") == [], "for maintenance: told at its end"
    assert read("condition.raised", "host_1", code="gpu.lost:GPU-1", facts=drained) == []
    assert raised(read("condition.raised", "host_1", "cluster_1", code="gpu.lost:GPU-3", facts=drained))


def test_a_lost_host_is_a_page_while_something_on_it_is_rented_and_is_held_back_by_its_relay() -> None:
    facts = Known(replace(HOST, access_id="access_1"))
    one = raised(read("host.lost", "host_1", facts=facts, held="2"))
    assert (one.severity, one.held_by) == (Severity.PAGE, (("relay.down", "access_1"),))
    assert raised(read("host.lost", "host_1", facts=facts, held="0")).severity is Severity.TICKET
    assert read("host.online", "host_1") == [Clear("host_1", "host.lost")]
    flapping = raised(read("host.online", "host_1", settling_s="600"))
    assert (flapping.rule, flapping.until_ns) == ("host.flapping", NOW + 10 * MINUTE)


def test_a_relay_that_is_lost_is_told_unless_people_drained_it() -> None:
    assert raised(read("access.lost", "access_1", region="north", drained="0")).rule == "relay.down"
    assert read("access.lost", "access_1", drained="1") == []
    assert read("access.back", "access_1") == [Clear("access_1", "relay.down", "access_1")]


def test_jobs_wait_are_retried_and_fail_by_their_submission() -> None:
    waits = raised(read("job.queued", "job_1", "account_1"))
    assert (waits.rule, waits.cause, waits.duration_ns) == ("job.queued", JOB.group, 10 * MINUTE)
    assert waits.audiences == ("account_1", OPERATORS)
    assert Clear(JOB.group, "job.queued", "job_1") in read("job.starting", "job_1")
    again = read("job.migrating", "job_1")
    assert (raised(again).rule, raised(again).audiences) == ("job.retried", ("account_1",))
    assert Clear(JOB.group, "job.retried", "job_1") in read("job.running", "job_1")
    for kind in ("job.failed", "job.lost"):
        assert (raised(read(kind, "job_1")).rule, raised(read(kind, "job_1")).lasts_ns) == ("job.failed", HOUR)


def test_a_cluster_tells_of_lost_members_and_of_its_end_before_it_comes() -> None:
    assert raised(read("cluster.degraded", "cluster_1")).rule == "cluster.degraded"
    long = replace(CLUSTER, request=replace(CLUSTER.request, max_duration_ns=8 * HOUR))
    ends = raised(read("cluster.running", "cluster_1", facts=Known(made=long)))
    assert (ends.rule, ends.after_ns) == ("lease.ending", NOW + 8 * HOUR - 10 * MINUTE)
    assert cleared(read("cluster.running", "cluster_1"))[0].rule == "cluster.degraded"
    assert read("cluster.deleted", "cluster_1") == [Clear(CLUSTER.cluster_id)]


def test_a_rank_of_a_gang_that_failed_is_told_with_its_lines_in_place_of_a_degraded_cluster() -> None:
    gang = replace(CLUSTER, request=replace(CLUSTER.request, kind=ClusterKind.GANG, hosts=3))
    said = f"lab is Degraded: rank 1 on b {multi_host.ENDED_ALONE}: exit 7"
    row = EventRow(1, EventId("event_1"), NOW, "cluster.degraded", ("cluster_1",), said, "", {})
    assert list(signals_of(row, Known(made=gang))) == []
    assert raised(list(signals_of(row, Known()))).rule == "cluster.degraded"
    first = replace(workload(), rank=1, host_name="b", exit_code=7, ended_at_ns=NOW)
    signal = rank_failed(RankFailed(gang, first, 3, ("a", "b")))
    assert signal.text.splitlines() == [
        "Rank 1 on b failed first of 3, at 2001-09-09T01:46:40.000Z by the Master's clock: exit 7. Its last lines:",
        "a",
        "b",
    ]
    assert signal.audiences == (gang.account_id,)
    over = {one.rule for one in cleared(read("cluster.failed", "cluster_1", facts=Known(made=gang)))}
    assert "cluster.degraded" in over and not over & {None, signal.rule}


def test_a_budget_is_told_at_each_mark_to_its_project_and_the_mark_before_is_over() -> None:
    ends = str(NOW + HOUR)
    found = read(
        "limit.reached",
        "account_1",
        "token_1",
        percent="80",
        spender="token_1",
        limit="max_monthly_cost",
        until_ns=ends,
    )
    one = raised(found)
    assert (one.rule, one.cause, one.audiences, one.until_ns) == ("budget.80", "token_1", ("account_1",), NOW + HOUR)
    assert cleared(found) == [Clear("token_1", "budget.50", "max_monthly_cost")]
    assert Clear("token_1", "budget.80") in read("limit.set", "account_1", "token_1")
    own = raised(read("rental.budget_reached", "account_1", "cluster_1", "rental_1", percent="95", name="lab"))
    assert (own.rule, own.cause) == ("budget.95", "cluster_1")


def test_funds_that_run_low_are_told_until_credits_are_added_or_the_rental_is_over() -> None:
    low = raised(read("rental.funds_low", "account_1", "cluster_1", "rental_1"))
    assert (low.rule, low.cause, low.subject) == ("balance.low", "account_1", "rental_1")
    assert read("account.credited", "account_1") == [Clear("account_1", "balance.low")]
    assert Clear(CLUSTER.account_id, "balance.low", "rental_1") in read("rental.closed", "cluster_1", "rental_1")


def test_moments_of_hosts_and_volumes() -> None:
    assert raised(read("gpu.ecc_uncorrected", "host_1", "GPU-1")).rule == "gpu.ecc"
    assert raised(read("host.changed", "host_1", driver_from="535", driver_to="550")).rule == "driver.changed"
    assert read("host.changed", "host_1") == []
    assert raised(read("volume.not_saved", "cluster_1", "host_1", "account_1")).audiences == (CLUSTER.account_id,)


def test_every_rule_says_what_to_do_and_each_condition_that_matters_has_one() -> None:
    assert all(rule.remedy for rule in rules.RULES.values())
    matters = {code.value for code in ConditionCode if code.severity is not Severity.INFO}
    assert matters <= rules.RULES.keys()
    assert not {code.value for code in ConditionCode} - matters & rules.RULES.keys()
