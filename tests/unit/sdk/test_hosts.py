"""`windrow host show` and `windrow gpu show`: what challenges came to, and Masters that know none."""

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from typer import BadParameter
from typer.main import get_command

from windrow.cli import host_bandwidth, host_facts, hosts
from windrow.cli.main import app
from windrow.client import Client
from windrow.config import Config
from windrow.errors import ApiProblem

Json = dict[str, Any]
HOST: Json = {"id": "host_1", "name": "box", "simulated": False, "headline": "online", "gpus": []}
GPU: Json = {
    "uuid": "GPU-1",
    "name": "H100",
    "simulated": False,
    "host_id": "host_1",
    "host_name": "box",
    "link_state": "online",
    "slot_state": "free",
    "unavailable_reason": None,
    "tier": "h100/C",
    "tier_reasons": [],
    "price_per_hour": "1",
    "conditions": [],
    "claims": [],
    "benchmarks": [],
    "groups": [],
}
NONE_YET: Json = {"state": "unverified", "words": "None of its 1 GPUs was challenged yet.", "due_at": None, "gpus": []}
CARD: Json = {
    "gpu_uuid": "GPU-1",
    "verification_id": "verification_1",
    "at": "2027-01-15T08:00:00.000Z",
    "outcome": "failed",
    "detail": "An opened entry is not the product's.",
    "nonce": "00ff",
    "span_ms": 2412,
    "size": 8192,
    "rounds": 2,
    "openings": 64,
    "bound_ms": 120_000,
    "calibrated": False,
    "times": "not measured",
}
WHY = {"slot_id": "GPU-1", "gpu": "GPU-1", "tier": "h100/C", "reasons": ["Nobody rented in h100/C."]}
STANDING = {"reliability": {"words": "0.987: it was there."}, "unrented": [WHY]}
PROVED: Json = {"words": "SSH reached in 1.9 s.", "stages": [], "proofs": []}
STEP: Json = {"name": "reach", "state": "passed", "took_ms": 1900, "words": "Greeted through its relay."}
STAGE: Json = {"name": "listed", "state": "done", "at": "2027-01-15T08:00:00.000Z"}
SAYS: Json = {
    "groups": [
        {
            "name": "Machine",
            "fields": [
                {"name": "iommu", "label": "IOMMU", "value": True, "unit": "bool"},
                {"name": "secure_boot", "label": "Secure boot", "value": None, "unit": "bool"},
                {"name": "swap_bytes", "label": "Swap", "value": 4 << 30, "unit": "By"},
            ],
        }
    ]
}
ROUND: Json = {
    "region": "eu-north",
    "at": "2027-01-15T08:00:00.000Z",
    "up_bps": 20_000_000,
    "down_bps": 940_000_000,
    "relays": 2,
}
ROUNDS: Json = {"host_id": "host_1", "rounds": [ROUND]}
Show = Callable[..., str]


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Show:
    """Run a command against a Master that answers for the verification with this status and body."""

    def run(*words: str, status: int = 200, verification: Json) -> str:
        def answer(request: httpx2.Request) -> httpx2.Response:
            if request.url.path.endswith("/verification"):
                return httpx2.Response(status, json=verification)
            if request.url.path.endswith("/standing"):
                return httpx2.Response(status, json=STANDING)
            if request.url.path.endswith("/bandwidth"):
                return httpx2.Response(200, json=ROUNDS)
            if request.url.path.endswith("/facts"):
                return httpx2.Response(status, json=SAYS)
            if request.url.path.endswith("/default-image"):
                chosen = json.loads(request.content)["image"]
                return httpx2.Response(200, json=HOST | {"default_image": chosen})
            if request.url.path.endswith("/place"):
                return httpx2.Response(200, json=HOST | json.loads(request.content))
            if request.url.path.endswith("/proof"):
                return httpx2.Response(status, json=PROVED)
            return httpx2.Response(200, json=GPU if "/gpus/" in request.url.path else HOST)

        config, transport = Config("http://master", "wr_secret"), httpx2.MockTransport(answer)
        for module in (hosts, host_bandwidth, host_facts):
            monkeypatch.setattr(
                module, "client", lambda context: context.with_resource(Client(config, transport=transport))
            )
        get_command(app)([*words], standalone_mode=False)
        return "".join(capsys.readouterr())

    return run


def test_a_master_without_the_route_shows_the_host_and_a_dash(show: Show) -> None:
    gone = {"code": "not_found", "detail": "Not Found"}
    for words in (("host", "show", "host_1"), ("gpu", "show", "GPU-1")):
        (line,) = [one for one in show(*words, status=404, verification=gone).splitlines() if "Verification" in one]
        assert line.split() == ["Verification", "–"]


def test_any_other_problem_of_the_route_is_said(show: Show) -> None:
    with pytest.raises(ApiProblem, match="No room"):
        show("host", "show", "host_1", status=403, verification={"detail": "No room."})


def test_an_offer_says_how_much_of_it_is_free_and_of_what() -> None:
    def said(tier: str, unit: str, free: int, total: int) -> str:
        return hosts.free_text({"tier": tier, "unit": unit, "free": free, "total": total})

    assert said("cpu/C", "processor", 1, 1) == "1 of 1 host"
    assert said("h100/A", "gpu", 23, 160) == "23 of 160 GPUs"
    assert said("h100:1g.10gb/A", "gpu", 0, 7) == "0 of 7 slices"


def test_a_card_that_was_never_challenged_says_what_to_type(show: Show) -> None:
    assert "windrow host verify host_1" in show("gpu", "show", "GPU-1", verification=NONE_YET)
    assert "as soon as a GPU is free" in show("host", "show", "host_1", verification=NONE_YET)


def test_the_verdict_of_a_card_is_shown_with_its_evidence(show: Show) -> None:
    known = NONE_YET | {"gpus": [CARD], "due_at": "2027-01-15T08:02:00.000Z"}
    shown = show("gpu", "show", "GPU-1", verification=known)
    for words in (
        "failed at 2027-01-15T08:00:00.000Z: An opened entry is not the product's.",
        "2 rounds of 8192 x 8192, 64 openings",
        "2.41 s of at most 120.00 s",
        "observed: its time decides nothing",
        "memory: not filled",
        "verification_1, nonce 00ff",
        "next due: 2027-01-15T08:02:00.000Z",
    ):
        assert words in shown
    assert "calibrated: twenty runs" in show(
        "gpu", "show", "GPU-1", verification=known | {"gpus": [CARD | {"calibrated": True, "times": "twenty runs"}]}
    )


def test_a_simulated_card_is_not_told_to_be_verified(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(GPU, "simulated", True)
    shown = show("gpu", "show", "GPU-1", verification=NONE_YET | {"words": "Not verified: simulated."})
    assert "Not verified: simulated." in shown and "host verify" not in shown


def test_a_host_shows_how_far_one_can_rely_on_it_and_why_nobody_rents_it(show: Show) -> None:
    assert "0.987: it was there." in show("host", "show", "host_1", verification=NONE_YET)
    said = show("host", "why", "host_1", verification=NONE_YET).splitlines()
    assert said == ["GPU-1 (h100/C)", "  - Nobody rented in h100/C."]


def test_a_host_shows_how_far_it_came_and_what_its_newest_test_rental_saw(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "SSH reached in 1.9 s." in show("host", "show", "host_1", verification=NONE_YET)  # and no step: none ran
    monkeypatch.setitem(PROVED, "proofs", [{"steps": [STEP]}])
    monkeypatch.setitem(PROVED, "stages", [STAGE])
    shown = show("host", "show", "host_1", verification=NONE_YET)
    assert "reach: passed, 1.9 s: Greeted through its relay." in shown
    assert "listed: done " in shown and "2027" not in shown


def test_what_a_host_says_of_its_machine_is_shown_and_what_it_does_not_is_a_dash(show: Show) -> None:
    head, *rows = show("host", "facts", "host_1", verification=NONE_YET).splitlines()
    assert head == "Machine:"
    assert [row.split()[-1] for row in rows[:2]] == ["yes", "–"]
    assert "4.0 GiB" in rows[2] or "4 GiB" in rows[2]


def test_an_owner_chooses_a_default_image_and_takes_it_back(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    said = show("host", "set", "host_1", "--default-image", "debian:13", verification={})
    assert said == "box: default image debian:13.\n"
    assert show("host", "set", "host_1", "--no-default-image", verification={}) == "box: default image none.\n"
    for words in ((), ("--default-image", "debian:13", "--no-default-image")):
        with pytest.raises(BadParameter, match="either"):
            show("host", "set", "host_1", *words, verification={})
    monkeypatch.setitem(HOST, "default_image", "debian:13")
    (line,) = [one for one in show("host", "show", "host_1", verification=NONE_YET).splitlines() if "Default" in one]
    assert line.split() == ["Default", "image", "debian:13"]


def test_an_owner_says_where_a_host_is_and_labels_it(show: Show, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HOST, "country", "DE")
    monkeypatch.setitem(HOST, "labels", ["quiet"])
    for words, said in (
        (("--label", "a", "--label", "b=1"), "country DE, labels a, b=1"),
        (("--country", "FR"), "country FR, labels quiet"),
        (("--country", "", "--no-labels"), "country not known, labels none"),
    ):
        assert show("host", "set", "host_1", *words, verification={}) == f"box: {said}.\n"
    with pytest.raises(BadParameter):
        show("host", "set", "host_1", "--label", "a", "--no-labels", verification={})


def test_what_relays_found_of_a_line_is_shown_round_by_round(show: Show) -> None:
    head, line = show("host", "bandwidth", "host_1", verification={}).splitlines()
    assert head.split() == ["AT", "REGION", "DOWN", "UP", "RELAYS"]
    assert line.split()[:2] == [ROUND["at"], "eu-north"] and line.split()[-1] == "2"
    assert json.loads(show("host", "bandwidth", "host_1", "--json", verification={})) == ROUNDS


def test_a_condition_is_shown_with_its_remedy_and_without_one_where_the_master_knows_none(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    hot: Json = {"code": "gpu.hot:GPU-1", "detail": "This GPU is hot.", "since": "2027-01-15T08:00:00.000Z"}
    monkeypatch.setitem(HOST, "conditions", [hot])
    assert "gpu.hot: This GPU is hot. (" in show("host", "show", "host_1", verification=NONE_YET)
    monkeypatch.setitem(GPU, "conditions", [hot | {"remedy": "Look at its cooling."}])
    assert "- Look at its cooling." in show("gpu", "show", "GPU-1", verification=NONE_YET)


def test_what_the_state_of_a_host_says_is_not_said_again() -> None:
    told = "1 of 2 GPUs faulty. GPU 5: It fell off Reboot."
    lost = {
        "code": "gpu.lost:GPU-1",
        "about": "GPU 5",
        "title": "GPU lost",
        "detail": "It fell off.",
        "remedy": "Reboot.",
    }
    ((_, said),) = hosts._conditions([lost | {"since": "2027-01-15T08:00:00.000Z"}], told=told)
    assert said.startswith("GPU 5: GPU lost (") and "fell off" not in said
    assert hosts._unsaid("faulty: It fell off.", told) == "faulty"
    assert hosts._unsaid("paused: it is hot", told) == "paused: it is hot"


STATE: Json = {"state": "rented", "state_text": "rented, 1 of 2 parts", "state_reason": None}


def test_the_state_of_a_gpu_and_slot_is_the_masters_word_with_its_reason() -> None:
    assert hosts.gpu_state(GPU | STATE) == "rented, 1 of 2 parts"
    paused = {"state_text": "paused", "state_reason": "it is hot"}
    assert hosts.gpu_state(GPU | paused) == "paused: it is hot"
    assert hosts.gpu_state(GPU) == "free", "of a Master that does not say it"


def test_a_degraded_host_is_shown_with_what_to_do_and_its_conditions_by_the_number_of_the_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = {
        "code": "gpu.lost:GPU-1",
        "about": "GPU 5",
        "detail": "It fell off.",
        "since": "2027-01-15",
        "remedy": "Reboot.",
    }
    degraded = {"headline": "degraded", "headline_reason": "1 of 2 GPUs faulty", "headline_remedy": "Reboot."}
    slot = {
        "id": "GPU-1/0",
        "profile": "1g.10gb",
        "state": "faulted",
        "state_text": "faulty",
        "state_reason": "It fell off.",
    }
    item = HOST | degraded | {"conditions": [lost], "gpus": [GPU | STATE | {"index": 5}], "slots": [slot]}
    nothing = {"code": "not_found", "detail": "Not Found"}

    def answer(request: httpx2.Request) -> httpx2.Response:
        is_host = request.url.path.endswith("/host_1")
        return httpx2.Response(200, json=item) if is_host else httpx2.Response(404, json=nothing)

    config, transport = Config("http://master", "wr_secret"), httpx2.MockTransport(answer)
    monkeypatch.setattr(hosts, "client", lambda context: context.with_resource(Client(config, transport=transport)))
    get_command(app)(["host", "show", "host_1"], standalone_mode=False)
    shown = " ".join(capsys.readouterr().out.split())
    assert "State degraded: 1 of 2 GPUs faulty What to do Reboot." in shown
    assert "Problem GPU 5: gpu.lost: It fell off." in shown
    assert "GPU 5 H100 – rented, 1 of 2 parts" in shown
    assert "Part 1g.10gb faulty: It fell off." in shown
