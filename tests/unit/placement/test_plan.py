"""Requests are placed, with reasons for each place that does not fit."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow_master.placement.model import (
    Candidate,
    Placement,
    Refusal,
    Request,
    Runtime,
    SlotOffer,
    Snapshot,
    Weights,
)
from windrow_master.placement.plan import KEPT_LOSERS, plan, reweighed
from windrow_master.placement.record import RECORD_MAX, parse_record, record_bytes
from windrow_proto.ids import AccountId, GpuUuid, HostId, SlotId
from windrow_proto.model import Isolation
from windrow_proto.units import GIB, MICROCENTS_PER_UNIT, MINUTE, Bytes, Microcents

OWNER = AccountId("account_owner")
RENTER = AccountId("account_renter")


def gpu(number: int, host: str = "a", name: str = "NVIDIA H100 PCIe", gib: int = 80, cents: int = 200) -> SlotOffer:
    return SlotOffer(
        SlotId(f"GPU-{host}-{number}"),
        "h100/A",
        Microcents(cents * MICROCENTS_PER_UNIT // 100),
        None,
        GpuUuid(f"GPU-{host}-{number}"),
        name,
        Bytes(gib * GIB),
        Isolation.WHOLE,
    )


def cpu(host: str = "a", cents: int = 2) -> SlotOffer:
    return SlotOffer(SlotId(f"{host}/cpu/0"), "cpu/B", Microcents(cents * MICROCENTS_PER_UNIT // 100))


def host(name: str, *slots: SlotOffer, **other: object) -> Candidate:
    made = Candidate(
        host_id=HostId(f"host_{name}"),
        host_name=name,
        owner_account=OWNER,
        simulated=False,
        admin_state="active",
        verify_state="unverified",
        link_state="online",
        is_settled=True,
        runtimes=("docker", "process"),
        cpus_free=16,
        memory_free_bytes=Bytes(64 * GIB),
        slots=slots,
    )
    return replace(made, **other)  # type: ignore[arg-type]


def request(**other: object) -> Request:
    return replace(Request(account_id=RENTER, tie_seed="t", image="busybox"), **other)  # type: ignore[arg-type]


def placed(answer: Placement | Refusal) -> Placement:
    assert isinstance(answer, Placement), answer
    return answer


def reasons(answer: Placement | Refusal) -> list[str]:
    assert isinstance(answer, Refusal), answer
    return [one.reason for one in answer.reasons]


def test_a_cpu_request_takes_one_processor_slot() -> None:
    chosen = placed(plan(request(), Snapshot((host("a", cpu()),)))).chosen
    assert (chosen.slot_ids, chosen.tier, chosen.runtime) == (("a/cpu/0",), "cpu/B", Runtime.DOCKER)


def test_a_plan_says_how_the_chosen_way_is_kept_apart_from_its_host() -> None:
    said = host("a", cpu(), about_containers="of containers", about_processes="of processes")
    ways = {"own": request(image=None, account_id=OWNER), "a stranger's": request()}
    notes = {whose: placed(plan(asked, Snapshot((said,)))).chosen.note for whose, asked in ways.items()}
    assert notes == {"own": "of processes", "a stranger's": "of containers"}


def test_a_gpu_request_takes_whole_gpus_of_one_host_and_pays_for_each() -> None:
    chosen = placed(plan(request(gpus=2), Snapshot((host("a", gpu(0), gpu(1), gpu(2), cpu()),)))).chosen
    assert chosen.slot_ids == ("GPU-a-0", "GPU-a-1")
    assert chosen.price_per_hour == 4 * MICROCENTS_PER_UNIT


@pytest.mark.parametrize(
    ("change", "asked", "words"),
    [
        ({"admin_state": "draining"}, {}, "takes no new work (it is draining)"),
        ({"link_state": "suspect"}, {}, "its link is suspect"),
        ({"is_settled": False}, {}, "less than 60 s ago"),
        (
            {"is_settled": False, "settling_ns": 20 * MINUTE},
            {},
            "failed several times: it came back less than 20 min",
        ),
        ({"is_known": False, "cpus_free": 0, "slots": ()}, {}, "only just online, and has not told yet what it has"),
        ({"verify_state": "failed"}, {}, "until it is verified, for its owner only (now failed)"),
        ({"runtimes": ("process",)}, {}, "its docker runtime is not available"),
        ({"runtimes": (), "about_containers": "its daemon is gone"}, {}, "run containers now (its daemon is gone)"),
        ({"runtimes": ("process",)}, {"image": None}, "cannot run containers now"),
        ({}, {"image": None}, "no default image; name an image"),
        ({}, {"image": None, "runtime": Runtime.PROCESS}, "plain processes run only for the owner"),
        ({"runtimes": ("docker",)}, {"image": None, "account_id": OWNER}, "it has no process runtime now"),
        ({}, {"cpus": 17}, "too few CPUs (16 in all, you ask for 17)"),
        ({}, {"memory_bytes": Bytes(65 * GIB)}, "too little memory (64 GiB in all, you ask for 65 GiB)"),
        ({}, {"gpus": 3}, "too few GPUs (2 in all, you ask for 3 on one host)"),
        ({}, {"gpus": 1, "gpu_model": "A100"}, "another GPU model (NVIDIA H100 PCIe)"),
        ({}, {"gpus": 1, "gpu_memory_bytes": Bytes(81 * GIB)}, "too little GPU memory (80 GiB, you ask for 81 GiB)"),
        ({}, {"gpus": 1, "tier": "h100/B"}, "not in tier h100/B (h100/A)"),
        (
            {},
            {"gpus": 1, "max_price_per_hour": Microcents(1)},
            "dearer than you allow (2.00 per hour, you allow 0.00000001)",
        ),
        ({"slots": ()}, {}, "no CPU slot"),
    ],
)
def test_a_refusal_says_for_each_host_why(change: dict[str, object], asked: dict[str, object], words: str) -> None:
    made = replace(host("a", gpu(0), gpu(1), cpu()), **change)  # type: ignore[arg-type]
    (reason,) = reasons(plan(request(**asked), Snapshot((made,))))
    assert words in reason


def test_a_busy_gpu_is_counted_with_its_reason() -> None:
    busy = replace(gpu(0), taken="in use")
    (reason,) = reasons(plan(request(gpus=2), Snapshot((host("a", busy, gpu(1)),))))
    assert reason == "too few free GPUs (1 of 2, you ask for 2: 1 in use)"


def test_the_owners_own_work_without_an_image_runs_as_a_process() -> None:
    answer = placed(plan(request(account_id=OWNER, image=None), Snapshot((host("a", cpu()),))))
    assert (answer.chosen.runtime, answer.chosen.image) == (Runtime.PROCESS, None)


def test_containers_that_reach_their_hosts_network_run_its_owners_work_only() -> None:
    unfenced = Snapshot((host("a", cpu(), is_fenced=False),))
    assert "does not keep containers away from its own network" in reasons(plan(request(), unfenced))[0]
    assert placed(plan(request(account_id=OWNER), unfenced)).chosen.runtime is Runtime.DOCKER


def test_containers_that_get_no_gpus_take_no_request_for_gpus() -> None:
    without = Snapshot((host("a", gpu(0), cpu(), gives_containers_gpus=False),))
    assert "the NVIDIA Container Toolkit is missing" in reasons(plan(request(gpus=1), without))[0]
    assert placed(plan(request(), without)).chosen.runtime is Runtime.DOCKER
    own = placed(plan(request(gpus=1, account_id=OWNER, image=None), without))
    assert own.chosen.runtime is Runtime.PROCESS


def test_a_stranger_without_an_image_gets_the_hosts_default_image() -> None:
    answer = placed(plan(request(image=None), Snapshot((host("a", cpu(), default_image="debian:13"),))))
    assert (answer.chosen.runtime, answer.chosen.image) == (Runtime.DOCKER, "debian:13")


def test_an_image_is_always_a_container_even_for_the_owner() -> None:
    assert placed(plan(request(account_id=OWNER), Snapshot((host("a", cpu()),)))).chosen.runtime is Runtime.DOCKER


def test_a_simulated_host_serves_who_asks_for_it_or_names_it() -> None:
    fleet = Snapshot((host("a", cpu(), simulated=True, runtimes=("simulated",)), host("b", cpu("b"))))
    assert placed(plan(request(wants_simulated=True), fleet)).chosen.runtime is Runtime.SIMULATED
    assert placed(plan(request(host_id=HostId("host_a")), fleet)).chosen.host_id == "host_a"
    assert placed(plan(request(), fleet)).chosen.host_id == "host_b"


def test_until_verification_exists_unverified_hosts_are_schedulable_and_afterwards_for_their_owner_only() -> None:
    fleet = Snapshot((host("a", cpu()),), verification_exists=True)
    assert "until it is verified" in reasons(plan(request(), fleet))[0]
    assert placed(plan(request(account_id=OWNER), fleet)).chosen.host_id == "host_a"


def test_the_cheaper_of_two_equal_hosts_wins() -> None:
    fleet = Snapshot((host("a", gpu(0, cents=300)), host("b", gpu(0, "b", cents=200))))
    assert placed(plan(request(gpus=1), fleet)).chosen.host_id == "host_b"


def test_a_small_request_leaves_the_large_gap_whole() -> None:
    full = host("a", *(gpu(number) for number in range(8)))
    rest = host("b", gpu(0, "b"))
    assert placed(plan(request(gpus=1), Snapshot((full, rest)))).chosen.host_id == "host_b"


def test_cpu_work_stays_away_from_gpus() -> None:
    fleet = Snapshot((host("a", gpu(0), cpu()), host("b", cpu("b"))))
    assert placed(plan(request(), fleet)).chosen.host_id == "host_b"


@pytest.mark.parametrize(
    ("name", "wanted", "is_it"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 80GB", True),
        ("NVIDIA GeForce RTX 4090", "rtx4090", True),
        ("NVIDIA L40S", "L4", False),
        ("NVIDIA RTX A4000", "RTX 4000", False),
    ],
)
def test_a_model_is_named_as_people_write_it(name: str, wanted: str, is_it: bool) -> None:
    answer = plan(request(gpus=1, gpu_model=wanted), Snapshot((host("a", gpu(0, name=name)),)))
    assert isinstance(answer, Placement) is is_it


def test_equal_hosts_share_the_load_fairly_and_the_order_of_the_list_does_not_matter() -> None:
    hosts = tuple(host(f"h{number}", cpu(f"h{number}")) for number in range(4))
    counts: dict[str, int] = {}
    for seed in range(1000):
        asked = request(tie_seed=str(seed))
        first = placed(plan(asked, Snapshot(hosts))).chosen
        assert placed(plan(asked, Snapshot(hosts[::-1]))).chosen == first
        counts[first.host_id] = counts.get(first.host_id, 0) + 1
    assert max(counts.values()) < 2 * min(counts.values())


@given(
    asked=st.builds(
        lambda gpus, cpus, owner, image: request(
            gpus=gpus, cpus=cpus, account_id=OWNER if owner else RENTER, image=image
        ),
        st.integers(0, 3),
        st.integers(1, 20),
        st.booleans(),
        st.sampled_from([None, "busybox"]),
    ),
    busy=st.lists(st.booleans(), min_size=24, max_size=24),
    weights=st.builds(Weights, st.integers(0, 5), st.integers(0, 5)),
)
def test_a_record_read_back_gives_the_same_bytes_and_the_same_order(
    asked: Request, busy: list[bool], weights: Weights
) -> None:
    hosts = tuple(
        host(f"h{number}", replace(gpu(0, f"h{number}"), taken="in use" if flag else None), cpu(f"h{number}"))
        for number, flag in enumerate(busy)
    )
    decision = plan(asked, Snapshot(hosts), weights).decision
    record = record_bytes(decision)
    read = parse_record(record)
    assert record_bytes(read) == record and len(record) <= RECORD_MAX
    assert read == decision
    assert reweighed(read, weights) == tuple(one for one in read.verdicts if one.score is not None)
    assert len(read.verdicts) == KEPT_LOSERS + 1
    assert sum(read.unkept.values()) == len(hosts) - KEPT_LOSERS - 1


def test_a_record_answers_what_if_cost_weighed_more() -> None:
    near = host("a", gpu(0, cents=400), verify_state="verified")
    cheap = host("b", gpu(0, "b", cents=100))
    decision = placed(plan(request(gpus=1), Snapshot((near, cheap)), Weights(cost=1, trust=9))).decision
    assert decision.chosen is not None and decision.chosen.host_id == "host_a"
    assert reweighed(decision, Weights(cost=20))[0].host_id == "host_b"


def test_a_record_is_never_larger_than_its_limit_and_counts_whom_it_does_not_name() -> None:
    def odd(number: int) -> str:
        return "".join(chr(0x4E00 + (number * 7919 + at * 104729) % 20_000) for at in range(100))

    hosts = tuple(own(odd(number)) for number in range(80))
    decision = placed(
        plan(
            gang(60, labels=tuple(odd(one)[:9] for one in range(9))),
            Snapshot(tuple(replace(one, labels=tuple(odd(at)[:9] for at in range(9))) for one in hosts)),
        )
    ).decision
    record = record_bytes(decision)
    read = parse_record(record)
    assert len(record) <= RECORD_MAX
    assert read.chosen is not None and decision.chosen is not None and read.chosen.host_id == decision.chosen.host_id
    named = len(read.verdicts) + sum(read.unkept.values())
    assert named == 80 == len(decision.verdicts) + sum(decision.unkept.values())


# --- slices -----------------------------------------------------------------------------------------------------------


def part(number: int, profile: str = "1g.10gb", isolation: Isolation = Isolation.MIG, gib: int = 10) -> SlotOffer:
    return replace(gpu(number, gib=gib, cents=30), profile=profile, isolation=isolation, tier=f"h100:{profile}/A")


WHOLE = replace(gpu(9), isolation=Isolation.WHOLE)


def test_a_whole_gpu_is_never_a_slice_and_a_slice_never_a_whole_gpu():
    answer = plan(request(gpus=1), Snapshot((host("a", WHOLE, part(1)),)))
    assert placed(answer).chosen.slot_ids == (WHOLE.slot_id,)
    answer = plan(request(gpus=1, slice="1g.10gb"), Snapshot((host("a", WHOLE, part(1)),)))
    assert placed(answer).chosen.slot_ids == (part(1).slot_id,)
    only = plan(request(gpus=1), Snapshot((host("a", part(1)),)))
    assert isinstance(only, Refusal) and only.reasons[0].reason == "no GPU"


def test_a_slice_is_of_the_profile_that_was_asked_for():
    answer = plan(request(gpus=1, slice="2g.20gb"), Snapshot((host("a", part(1), part(2, "2g.20gb")),)))
    assert placed(answer).chosen.slot_ids == (part(2).slot_id,)
    answer = plan(request(gpus=2, slice="2g.20gb"), Snapshot((host("a", part(1), part(2, "2g.20gb")),)))
    assert isinstance(answer, Refusal)
    assert "too few slices of what you ask for (1 of 2, you ask for 2)" in answer.reasons[0].reason


@pytest.mark.parametrize("isolation", [Isolation.MPS, Isolation.SHARED, Isolation.UNSPECIFIED])
def test_a_stranger_gets_a_whole_card_or_a_mig_slice_and_the_owner_any(isolation: Isolation):
    here = Snapshot((host("a", part(1, isolation=isolation)),))
    answer = plan(request(gpus=1, slice="1g.10gb"), here)
    assert isinstance(answer, Refusal)
    assert "for its host's owner" in answer.reasons[0].reason
    own = plan(request(gpus=1, slice="1g.10gb", account_id=OWNER, image=None), here)
    assert placed(own).chosen.slot_ids == (part(1).slot_id,)


def test_a_part_by_mps_takes_plain_processes_and_one_for_each():
    here = Snapshot((host("a", *(part(number, "mps.50", Isolation.MPS) for number in (1, 2))),))
    one = request(gpus=1, slice="mps.50", account_id=OWNER, image=None)
    assert placed(plan(one, here)).chosen.runtime is Runtime.PROCESS
    assert "serves plain processes and no containers" in reasons(plan(replace(one, image="busybox"), here))[0]
    assert "one part by mps" in reasons(plan(replace(one, gpus=2), here))[0]


def test_a_tier_of_the_card_takes_its_slices_where_a_slice_was_asked_for():
    here = Snapshot((host("a", part(1)),))
    for tier in ("h100", "h100:1g.10gb", "h100:1g.10gb/A"):
        assert placed(plan(request(gpus=1, slice="1g.10gb", tier=tier), here)).chosen.tier == "h100:1g.10gb/A"
    assert isinstance(plan(request(gpus=1, slice="1g.10gb", tier="h100/A"), here), Refusal)


def test_a_decision_about_a_slice_survives_its_record():
    answer = plan(request(gpus=1, slice="1g.10gb"), Snapshot((host("a", WHOLE, part(1)),)))
    assert parse_record(record_bytes(answer.decision)) == answer.decision


def members(answer: Placement | Refusal) -> list[str]:
    return [chosen.host_name for chosen in placed(answer).members]


def own(name: str, cents: int = 2, **other: object) -> Candidate:
    return host(name, cpu(name, cents), owner_account=RENTER, **other)


def gang(hosts: int, **other: object) -> Request:
    return request(image=None, hosts=hosts, **other)


def test_a_request_over_several_hosts_takes_as_many_distinct_ones_best_first() -> None:
    answer = placed(plan(gang(2), Snapshot((own("a", 9), own("b", 1), own("c", 5)))))
    assert members(answer) == ["b", "c"]
    assert answer.price_per_hour == sum(one.price_per_hour for one in answer.members)
    assert (answer.decision.chosen, answer.decision.others) == (answer.members[0], answer.members[1:])


def test_one_host_too_few_is_a_refusal_that_says_so_of_all_that_fit() -> None:
    answer = plan(gang(3), Snapshot((own("a"), own("b"), own("c", cpus_free=0))))
    assert isinstance(answer, Refusal)
    assert [one.text for one in answer.reasons] == [
        "2 of your hosts: only 2 of the 3 hosts that you ask for fit",
        "c: too few CPUs (0 in all, you ask for 1)",
    ]


def test_hosts_that_do_not_see_each_other_are_never_taken_together() -> None:
    near, far = own("a", 9, network="x"), own("b", 1, network="y")
    assert members(plan(gang(2), Snapshot((near, far, own("c", 9, network="x"))))) in (["a", "c"], ["c", "a"])
    (first, *_) = reasons(plan(gang(2), Snapshot((near, far))))
    assert first == "only 2 of the 2 hosts that you ask for fit, of which at most 1 see each other"


def test_a_host_that_nobody_sees_serves_one_host_only() -> None:
    hidden = own("a", network=None)
    assert members(plan(gang(1), Snapshot((hidden,)))) == ["a"]
    assert any("no other host sees it" in reason for reason in reasons(plan(gang(2), Snapshot((hidden, own("b"))))))


def test_the_price_limit_is_for_all_hosts_together() -> None:
    fleet = Snapshot(
        (own("a", 2, verify_state="verified"), own("b", 2, verify_state="verified"), own("c", 1), own("d", 1))
    )
    cents = MICROCENTS_PER_UNIT // 100
    assert sorted(members(plan(gang(2, max_price_per_hour=Microcents(2 * cents)), fleet))) == ["c", "d"]
    (first, *_) = reasons(plan(gang(2, max_price_per_hour=Microcents(2 * cents - 1)), fleet))
    assert first == "2 hosts together cost at least 0.02 per hour, more than you allow"


def test_containers_on_several_hosts_need_no_host_to_see_another_and_do_not_mix_with_processes() -> None:
    hidden, other = own("a", network=None), own("b", network="elsewhere")
    found = placed(plan(request(hosts=2), Snapshot((hidden, other))))
    assert {one.runtime for one in found.members} == {Runtime.DOCKER}

    one_way = replace(other, default_image=None, runtimes=("process",))
    contained = replace(hidden, runtimes=("docker",), default_image="busybox")
    (first, *_) = reasons(plan(gang(2), Snapshot((contained, one_way))))
    assert "only 2 of the 2 hosts" in first and "at most 1" in first


def test_a_decision_over_several_hosts_survives_its_record() -> None:
    decision = placed(plan(gang(2), Snapshot(tuple(own(name) for name in "abcd")))).decision
    assert parse_record(record_bytes(decision)) == decision


def test_what_only_lacks_a_card_that_is_back_in_a_moment_will_fit_soon():
    away = replace(gpu(0), taken="unavailable (It is being challenged)", is_back_soon=True)
    gone = replace(gpu(1), taken="unavailable (It is lost)")
    fleet = Snapshot((host("a", away, gone, cpu()),))

    def is_soon(**other: object) -> bool:
        answer = plan(request(**other), fleet)
        assert isinstance(answer, Refusal)
        return answer.is_soon

    assert is_soon(gpus=1)
    assert not is_soon(gpus=2)
    assert not is_soon(gpus=1, max_price_per_hour=Microcents(1))
    assert not is_soon(gpus=1, cpus=17)


def test_what_only_lacks_a_host_that_was_not_heard_yet_will_fit_soon():
    def is_soon(link_state: str, is_back_soon: bool) -> bool:
        away = replace(host("a", gpu(0)), link_state=link_state, is_settled=False, is_back_soon=is_back_soon)
        answer = plan(request(gpus=1), Snapshot((away,)))
        assert isinstance(answer, Refusal)
        return answer.is_soon

    assert is_soon("unknown", True)
    assert not is_soon("unknown", False), "it was away before the Master was"
    assert not is_soon("suspect", False)


def test_a_refusal_that_only_time_of_others_ends_is_not_soon():
    answer = plan(request(gpus=1), Snapshot((host("a", replace(gpu(0), taken="in use (leased)")),)))
    assert isinstance(answer, Refusal) and not answer.is_soon
