"""A host whose driver says that it has an H100, and whose OpenCL is a processor's: its test rental measures it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.state import FakeState
from tests.services import need
from tests.support.rental import Renter
from tests.support.stack import stack, wait_for
from windrow_proto.metrics import GPU_MATRIX, GPU_MEMORY

pytestmark = [pytest.mark.timeout(300), pytest.mark.slow, pytest.mark.xdist_group("proofs")]

CARD = "CPU-0"
"""What OpenCL calls the first processor: the driver's library gives its card the same id."""


@pytest.fixture(scope="module")
def renter(fake_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Renter]:
    """A market that proves its hosts. Its agent has no OpenCL, so that no challenge keeps a processor busy; what is
    rented has."""
    need("opencl")
    with FakeState(tmp_path_factory.mktemp("card") / "state", count=1) as state:
        state.gpu(0).uuid = CARD.encode()
        environment = {"LD_LIBRARY_PATH": str(fake_library.parent), "FAKE_NVML_STATE": str(state.path)}
        environment |= {"OCL_ICD_VENDORS": "/nowhere", "WINDROW_PROOFS": "on"}
        with stack(environment=environment) as running:
            found = Renter(running)
            found.online()
            yield found


def proved(renter: Renter) -> dict[str, Any]:
    def ended() -> Any:
        proofs = renter.ask("GET", f"/hosts/{renter.host()['id']}/proof")["proofs"]
        return next((one for one in proofs if one["ended_at"] and one["outcome"] != "unfinished"), None)

    found: dict[str, Any] = wait_for(ended, 150)
    return found


@pytest.mark.proves("a card with the name of an H100 is measured in a renter's place and graded by what it does there")
def test_a_card_is_in_the_tier_of_what_it_does_and_not_of_what_it_says(renter: Renter) -> None:
    one = proved(renter)
    steps = {step["name"]: step for step in one["steps"]}
    assert (one["outcome"], steps["benchmark"]["state"]) == ("passed", "passed"), one
    assert "GPU memory measured inside at " in one["words"], "and so in the listing"
    card = renter.ask("GET", f"/gpus/{CARD}")
    assert [figure["name"] for figure in card["benchmarks"]] == [GPU_MATRIX, GPU_MEMORY]
    assert {figure["proof_id"] for figure in card["benchmarks"]} == {one["proof_id"]}
    memory = card["benchmarks"][1]["value"]
    assert memory == steps["benchmark"]["fields"][f"{CARD} memory"]
    assert card["tier"] == "h100/C"
    assert card["tier_reasons"][0] == f"C: {GPU_MEMORY}: {memory / (0.8 * 3.35e12):.0%} of the expected 2.68 TBy/s"
    shown = renter.windrow("gpu", "show", CARD).stdout
    assert f"{GPU_MEMORY}: {memory:g} By/s" in " ".join(shown.split()), shown
    print(one["words"], [(step["name"], step["took_ms"]) for step in one["steps"]])
