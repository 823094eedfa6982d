"""A refusal is short, names what is nearest, and says which small change of the request would fit."""

from dataclasses import replace

import pytest

from tests.unit.placement.test_plan import OWNER, RENTER, cpu, gpu, host, placed, request
from windrow_master.placement.model import Candidate, Obstacle, Refusal, Request, SlotOffer, Snapshot
from windrow_master.placement.plan import plan
from windrow_proto.ids import HostId
from windrow_proto.units import GIB, MICROCENTS_PER_UNIT, Bytes, Microcents

CENT = MICROCENTS_PER_UNIT // 100


def refused(asked: Request, *hosts: Candidate) -> Refusal:
    answer = plan(asked, Snapshot(hosts))
    assert isinstance(answer, Refusal)
    return answer


def lines(refusal: Refusal) -> list[str]:
    return [*(one.text for one in refusal.reasons), *(way.text for way in refusal.ways)]


def busy(*slots: SlotOffer) -> list[SlotOffer]:
    return [replace(slot, taken="in use, running") for slot in slots]


def thousand() -> list[Candidate]:
    """Hosts of many kinds: busy, offline, held, small, simulated and without a GPU."""
    found = []
    for number in range(1_000):
        name = f"h{number:03d}"
        slots = [gpu(one, name, gib=16 + number % 5 * 16) for one in range(8)]
        kinds: dict[int, dict[str, object]] = {
            0: {"slots": tuple(busy(*slots))},
            1: {"link_state": "offline"},
            2: {"admin_state": "draining"},
            3: {"slots": (cpu(name),)},
            4: {"cpus_free": number % 4},
            5: {"simulated": True, "runtimes": ("simulated",)},
            6: {"runtimes": ("process",)},
            7: {"verify_state": "failed"},
            8: {"slots": tuple(replace(slot, price_per_hour=Microcents(900 * CENT)) for slot in slots)},
            9: {"is_settled": False},
        }
        found.append(host(name, *slots, **kinds[number % 10]))
    return found


@pytest.mark.parametrize(
    "asked",
    [
        {"gpus": 1, "gpu_model": "B200"},
        {"gpus": 64},
        {"gpus": 8, "cpus": 4, "max_price_per_hour": Microcents(100 * CENT)},
        {"gpus": 1, "tier": "nonsense/A"},
        {"gpus": 1, "gpu_memory_bytes": Bytes(500 * GIB)},
        {"cpus": 1_000},
        {"hosts": 16, "gpus": 8, "cpus": 16, "gpu_model": "H200"},
        {"host_id": HostId("host_h001"), "gpus": 1},
    ],
    ids=str,
)
@pytest.mark.case("M-25")
def test_a_thousand_hosts_are_refused_in_eight_lines(asked: dict[str, object]) -> None:
    fleet = Snapshot(tuple(thousand()))
    answer = plan(request(**asked), fleet)
    assert isinstance(answer, Refusal)
    headline_and_code = 2
    assert len(lines(answer)) + headline_and_code <= 8
    assert sum(one.count for one in answer.reasons) == (1 if "host_id" in asked else 900), (
        "the simulated ones are silent"
    )
    assert "simulated" not in f"{answer.detail}{lines(answer)}"


def test_the_same_reason_of_many_hosts_is_counted_once_and_the_nearest_is_named() -> None:
    hosts = [host(f"h{number}", cpu(f"h{number}"), cpus_free=number) for number in range(12)]
    refusal = refused(request(cpus=100), *hosts)
    assert [one.text for one in refusal.reasons] == [
        "12 hosts: too few CPUs (nearest: h11, 11 in all, you ask for 100)"
    ]
    assert refusal.reasons[0].hosts[0] == ("host_h11", "h11")


def test_ones_own_hosts_come_first() -> None:
    strangers = [host(f"h{number}", *busy(gpu(0, f"h{number}"))) for number in range(12)]
    mine = host("mine", gpu(0, "mine"), owner_account=RENTER, link_state="offline")
    refusal = refused(request(gpus=1), *strangers, mine)
    assert [(one.is_own, one.text) for one in refusal.reasons] == [
        (True, "mine: offline (its link is offline)"),
        (False, "12 hosts: no free GPU (in use, running)"),
    ]
    assert (refusal.detail, refusal.is_possible) == ("No host can run this now: offline.", True)


def test_one_host_is_named_in_the_sentence() -> None:
    refusal = refused(request(gpus=1), host("a", *busy(gpu(0))))
    assert refusal.detail == "a cannot run this now: no free GPU (1 in use, running)."


def test_simulated_hosts_are_no_part_of_an_answer_about_real_ones_and_the_other_way_round() -> None:
    pretend = host("sim", gpu(0, "sim"), simulated=True, runtimes=("simulated",))
    real = host("real", cpu("real"))
    assert [one.text for one in refused(request(gpus=1), real, pretend).reasons] == ["real: no GPU"]
    assert [one.text for one in refused(request(wants_simulated=True, gpus=2), real, pretend).reasons] == [
        "sim: too few GPUs (1 in all, you ask for 2 on one host)"
    ]
    assert refused(request(), pretend).detail.startswith("No real host has joined yet.")
    assert "sim" not in str(placed(plan(request(), Snapshot((real, pretend)))).decision.verdicts)


@pytest.mark.parametrize(
    ("asked", "text", "changes"),
    [
        (
            {"gpus": 1, "gpu_memory_bytes": Bytes(24 * 10**9)},
            "Fits on small with 17 GB per GPU instead of 24 GB, for 0.50 per hour",
            {"gpu_memory_bytes": 17 * 10**9},
        ),
        (
            {"gpus": 1, "gpu_model": "H100", "max_price_per_hour": Microcents(170 * CENT)},
            "Fits on large for 0.30 more per hour than you allow (2.00)",
            {"max_price_per_hour": 200 * CENT},
        ),
        ({"gpus": 4}, "Fits on small with 1 GPU instead of 4, for 0.50 per hour", {"gpus": 1}),
        ({"gpus": 1, "cpus": 64}, "Fits on large with 32 CPUs instead of 64, for 2.00 per hour", {"cpus": 32}),
        ({"gpus": 1, "gpu_model": "B200"}, "Fits on small with NVIDIA L4 instead of B200, for 0.50 per hour", None),
        (
            {"gpus": 1, "tier": "b200"},
            "Fits on small in tier l4/C instead of b200, for 0.50 per hour",
            {"tier": "l4/C"},
        ),
        ({"gpus": 1, "memory_bytes": Bytes(90 * GIB)}, "with 64 GiB of memory instead of 90 GiB", None),
        ({"gpus": 1, "host_id": HostId("host_cpu")}, "Fits on small instead of the host that you name", None),
        (
            {"gpus": 1, "hosts": 3},
            "Fits on small and 1 more with 2 hosts instead of 3, for 2.50 per hour",
            {"hosts": 2},
        ),
    ],
    ids=str,
)
def test_the_cheapest_small_change_is_told_with_its_host_and_price(
    asked: dict[str, object], text: str, changes: dict[str, object] | None
) -> None:
    small = host("small", replace(gpu(0, "small", "NVIDIA L4", 16, 50), tier="l4/C"))
    large = host("large", gpu(0, "large"), cpus_free=32)
    none = host("cpu", cpu("cpu"))
    if "max_price_per_hour" in asked:
        small = replace(small, admin_state="draining")
    if asked.get("gpu_memory_bytes"):
        large = replace(large, admin_state="draining")
    first, *_ = refused(request(**asked), small, large, none).ways
    assert text in first.text
    assert changes is None or first.changes == changes
    fits = placed(plan(replace(request(**asked), **first.changes), Snapshot((small, large, none))))
    assert fits.price_per_hour == first.price_per_hour, "what is told is what a creation would do"


def test_two_small_changes_together_are_told_where_one_is_not_enough() -> None:
    asked = request(gpus=1, gpu_model="H100", gpu_memory_bytes=Bytes(80 * GIB))
    (way,) = refused(asked, host("a", gpu(0, name="NVIDIA L4", gib=24, cents=50))).ways
    assert (
        way.text
        == "Fits on a with NVIDIA L4 instead of H100 and with 24 GiB per GPU instead of 80 GiB, for 0.50 per hour"
    )


def test_fewer_processors_cost_less() -> None:
    (way,) = refused(request(cpus=32), host("a", cpu(cents=64))).ways
    assert way.text == "Fits on a with 16 CPUs instead of 32, for 0.32 per hour"


def test_own_work_whose_image_cannot_run_there_is_offered_as_a_process() -> None:
    (way,) = refused(request(account_id=OWNER), host("a", cpu(), runtimes=("process",))).ways
    assert (way.changes, way.text) == (
        {"image": None},
        "Fits on a as a plain process, without the image, for 0.02 per hour",
    )


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        ({"gpus": 1, "gpu_model": "B200"}, "1 x B200"),
        ({"gpus": 16}, "16 x GPU"),
        ({"gpus": 1, "tier": "nonsense/A"}, "1 x GPU in tier nonsense/A"),
        ({"tier": "nonsense/A"}, "CPUs in tier nonsense/A"),
        ({"cpus": 1_000}, "1000 CPUs"),
        ({"gpus": 1, "slice": "1g.10gb"}, "1 x 1g.10gb"),
        ({"gpus": 1, "hosts": 3}, "1 x GPU on 3 hosts"),
    ],
    ids=str,
)
def test_what_no_host_of_the_market_has_is_told_as_such(asked: dict[str, object], what: str) -> None:
    hosts = [
        host("a", *busy(gpu(0), gpu(1)), cpu()),
        host("b", *busy(gpu(0, "b")), link_state="offline"),
        host("c", cpu("c"), cpus_free=0, cpus=64),
    ]
    refusal = refused(request(**asked), *hosts)
    assert not refusal.is_possible
    assert refusal.detail == f"No host of this market has {what}, free or not: it can run only when one joins."
    assert refused(request(gpus=2), *hosts).is_possible, "it is only busy"
    assert refused(request(gpus=5), *hosts, host("new", is_known=False, cpus_free=0)).is_possible, "it may have them"
    assert refused(request(cpus=64), *hosts).is_possible


def test_what_only_simulated_hosts_have_is_said_in_a_sentence_and_is_no_reason() -> None:
    pretend = host("sim", *busy(gpu(0, "sim")), simulated=True, runtimes=("simulated",))
    refusal = refused(request(gpus=1), host("real", cpu("real")), pretend)
    assert refusal.detail.endswith(
        "only when one joins. Simulated hosts have it: ask for the runtime simulated (`--runtime simulated`)."
    )
    assert [one.text for one in refusal.reasons] == ["real: no GPU"]
    assert "imulated" not in refused(request(gpus=2), host("real", cpu("real")), pretend).detail


def test_a_named_host_that_lacks_it_is_not_said_to_wait_for_another() -> None:
    refusal = refused(request(gpus=1, host_id=HostId("host_a")), host("a", cpu()), host("b", gpu(0, "b")))
    assert refusal.detail == "a does not have 1 x GPU, free or not."


def test_processors_in_a_tier_of_gpus_are_told_to_ask_for_a_gpu() -> None:
    refusal = refused(request(tier="h100/A"), host("a", gpu(0), cpu()))
    assert refusal.detail.endswith("h100/A is a tier of GPUs: ask for a GPU, too.")


def test_more_hosts_than_there_are_of_the_kind_are_no_matter_of_waiting() -> None:
    hosts = [host(name, *busy(gpu(0, name))) for name in "ab"]
    refusal = refused(request(gpus=1, hosts=3), *hosts)
    said = "Only 2 of the 3 hosts that you ask for are in this market, free or not: it can run only when more join."
    assert (refusal.detail, refusal.is_possible) == (said, False)
    assert refused(request(gpus=1, hosts=2), *hosts).detail == "No host can run this now: no free GPU."


def test_a_request_without_an_image_has_to_change_where_no_host_has_one_of_its_own() -> None:
    asked = request(image=None)
    refusal = refused(asked, host("a", cpu()), host("b", cpu("b")))
    assert refusal.detail == "No host can run this as it is: no default image; name an image."
    assert not refusal.is_possible
    later = host("c", cpu("c"), link_state="offline")
    assert refused(asked, host("a", cpu()), later).is_possible, "it may have one"


def test_a_named_host_is_the_only_one_that_is_told_of() -> None:
    hosts = host("a", *busy(gpu(0))), host("b", gpu(0, "b"))
    refusal = refused(request(gpus=1, host_id=HostId("host_a")), *hosts)
    assert [(one.code, one.count) for one in refusal.reasons] == [(Obstacle.BUSY, 1)]
    gone = refused(request(host_id=HostId("host_gone")), *hosts)
    assert (gone.detail, gone.reasons) == ("The host that you name is not in this market.", ())
