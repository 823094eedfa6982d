"""A host offers what its cards and its container daemon can do, and shows a dash for what a card does not say."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fake_nvml.build import FakeNvml
from tests.fake_nvml.state import ABSENT
from tests.support.person import Person
from tests.support.rental import Renter
from tests.support.stack import wait_for

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]

SAID = ("power_mw", "fan", "temperature", "utilization")
QUIET = 3
"""The card that says less."""


@pytest.mark.case("B-E8")
@pytest.mark.docker
def test_no_container_with_a_gpu_is_on_offer_where_the_daemon_cannot_give_one(
    person: Person, renter: Renter, image: str
) -> None:
    wanted = ("--gpu", "1", "--image", image)
    planned = person.windrow("cluster", "create", "--plan", *wanted, "--", "true")
    job = person.windrow("job", "submit", "--no-files", "--retries", "2", *wanted, "--", "true").well()
    shown = person.windrow("host", "show", renter.host()["id"]).well()
    process = person.windrow("run", "--no-files", "--gpu", "1", "--", "echo", "hi").well()

    assert planned.code == 5 and "container" in planned.errors and "GPU" in planned.errors, planned
    (one,) = [one for one in renter.all("/jobs") if one["id"] == job.text.strip()]
    assert (one["state"], one["attempts"]) == ("Queued", []), "it is tried nowhere in vain"
    assert "NVIDIA Container Toolkit" in " ".join(shown.text.split())
    assert process.text == "hi\n"


@pytest.mark.case("B-E10")
def test_two_gpus_are_named_by_uuid_in_the_order_of_the_bus(person: Person, renter: Renter) -> None:
    done = person.windrow("run", "--no-files", "--gpu", "2", "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES").well()

    on_bus = [one["uuid"] for one in sorted(renter.host()["gpus"], key=lambda one: str(one["pci_bus_id"]))]
    seen = done.text.strip().split(",")
    assert len(seen) == 2 and seen == [uuid for uuid in on_bus if uuid in seen]


@pytest.fixture
def quiet(cards: FakeNvml) -> Iterator[str]:
    """The UUID of a card whose power, fan, heat and use the driver does not support meanwhile."""
    card = cards.state.gpu(QUIET)
    before = {name: getattr(card, name) for name in SAID}
    for name in SAID:
        setattr(card, name, ABSENT)
    yield cards.state.uuid(QUIET)
    for name, value in before.items():
        setattr(card, name, value)


@pytest.mark.case("B-E13")
def test_what_a_card_does_not_say_is_a_dash_and_the_card_is_on_offer(
    person: Person, renter: Renter, quiet: str
) -> None:
    def read() -> Any:
        (one,) = [one for one in json.loads(person.windrow("gpu", "ls", "--json").text) if one["uuid"] == quiet]
        return one["power_watts"] is None and one["temperature_celsius"] is None and one

    one = wait_for(read)
    wide = person.windrow("gpu", "ls", "-o", "wide").well().text.splitlines()
    (line,) = [line for line in wide if quiet[-12:] in line]
    shown = person.windrow("gpu", "show", quiet).well()

    assert one["utilization_ratio"] is None and one["slot_state"] == "free"
    assert line.split().count("\u2013") == 3 and "None" not in line + shown.text
    assert person.windrow("run", "--no-files", "--gpu", "4", "--", "echo", "hi").well().text == "hi\n"
