"""A host with a card (of the fake driver) is rented by the Master itself, through its Access, soon after it joined."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.state import FakeState
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.xdist_group("proofs")]

STEPS = ["start", "reach", "count", "memory", "benchmark", "bandwidth", "end", "receipt"]


@pytest.fixture(scope="module")
def renter(fake_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """A market that proves its hosts; the driver's library of this one says that it has an H100."""
    with FakeState(tmp_path_factory.mktemp("card") / "state", count=1) as state:
        card = {"LD_LIBRARY_PATH": str(fake_library.parent), "FAKE_NVML_STATE": str(state.path)}
        with stack(environment={"WINDROW_PROOFS": "on", **card}) as running:
            found = Renter(running)
            found.online()
            yield found


def proof_of(renter: Renter) -> dict[str, Any]:
    found: dict[str, Any] = renter.ask("GET", f"/hosts/{renter.host()['id']}/proof")
    return found


@pytest.mark.proves("the Master rents a host that joined as a renter would, through the relay, and shows what it saw")
def test_a_host_is_proved_soon_after_it_joined_with_a_receipt(renter: Renter) -> None:
    found = wait_for(lambda: (f := proof_of(renter)) and f["proofs"] and f["proofs"][0]["ended_at"] and f, 120)
    (one,) = found["proofs"]

    assert one["outcome"] == "passed", one
    assert [step["name"] for step in one["steps"]] == STEPS
    steps = {step["name"]: step for step in one["steps"]}
    assert {name: step["state"] for name, step in steps.items() if step["state"] != "passed"} == {
        "count": "absent",
        "memory": "absent",
        "benchmark": "absent",
    }
    assert steps["reach"]["fields"]["greeting"].startswith("SSH-2.0-")
    receipt = renter.ask("GET", f"/receipts/{steps['receipt']['fields']['receipt_id']}")
    assert receipt["ended_at"] and receipt["amount"] == steps["receipt"]["fields"]["amount"]
    (row,) = renter.ask("GET", "/gpus")["items"]
    card = renter.ask("GET", f"/gpus/{row['uuid']}")
    assert steps["count"]["words"] == "Its GPUs could not be counted: there is no libcuda.so.1 inside."
    assert steps["benchmark"]["words"].startswith("GPU 0 was not measured: "), "it was rented, and looked for"
    assert card["tier"] == "h100/C"
    assert "C: GPU memory speed: not measured yet" in card["tier_reasons"], "and not by another device's figure"
    print(one["words"], [(step["name"], step["took_ms"]) for step in one["steps"]])


def test_what_it_found_is_public_in_the_listing_and_as_an_event(renter: Renter) -> None:
    host = wait_for(lambda: (h := renter.host()) and h["proof"] and h)
    assert host["proof"]["outcome"] == "passed" and "reached in" in host["proof"]["words"]
    kinds = renter.events(host["id"])
    assert {"host.listed", "host.proving", "host.proved"} <= set(kinds)
    stages = {one["name"]: one for one in proof_of(renter)["stages"]}
    assert {name: one["state"] for name, one in stages.items()} == {
        **dict.fromkeys(("downloaded", "certified", "tested", "listed"), "done"),
        "verified": "waiting",  # no OpenCL knows its card
    }
    assert stages["listed"]["at"] == host["listed_at"] and stages["tested"]["at"] == host["proof"]["at"]
    assert stages["downloaded"]["at"] is None, "nobody knows when"


def test_it_is_shown_on_the_command_line_and_not_asked_for_too_often(renter: Renter) -> None:
    host = wait_for(lambda: (h := renter.host()) and h["proof"] and h)
    shown = renter.windrow("host", "show", host["id"])
    assert host["proof"]["words"] in " ".join(shown.stdout.split()), shown.stdout
    refused = renter.windrow("host", "prove", host["id"])
    assert refused.returncode != 0 and "Ask again in" in refused.stderr
