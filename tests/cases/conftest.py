"""The market that all cases share, a person who types on it, and which of them `make test` takes: those marked `quick`.

The market has this machine as a host with four pretend H100 and this machine's Docker, and three simulated hosts. After
each test nothing is rented on it; a case that breaks a daemon or needs another market makes one of its own.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bench._cards import cards as made_cards
from bench._cards import why_none
from tests.cases import IS_LONG
from tests.fake_nvml.build import FakeNvml
from tests.services import found
from tests.support.images import Images
from tests.support.person import Person
from tests.support.rental import ENDED, Renter, renting
from tests.support.stack import wait_for
from windrow.errors import WindrowClientError

CARDS = 4
SIMULATED = 3
PASSED_ON = ("LD_LIBRARY_PATH", "FAKE_NVML_STATE")
JOBS_OVER = ("Succeeded", "Failed", "Cancelled", "Lost")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long ones out."""
    left_out = []
    for item in items:
        if "/tests/cases/" not in str(item.path):
            continue
        is_case = item.get_closest_marker("case") is not None
        if is_case and not IS_LONG and item.get_closest_marker("quick") is None:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="package")
def cards() -> Iterator[FakeNvml]:
    """The cards of the shared market: what a test writes to `state` is what the driver says. Put it back afterwards."""
    if reason := why_none():
        pytest.skip(reason)
    with made_cards(CARDS) as fake:
        yield fake


@pytest.fixture(scope="package")
def renter(cards: FakeNvml) -> Iterator[Renter]:
    """The market, and its first user by API."""
    environment = {name: cards.environment[name] for name in PASSED_ON}
    with renting("--simulate", str(SIMULATED), environment=environment) as running:
        wait_for(lambda: len(running.host()["gpus"]) == CARDS)
        if found()["docker"].version:
            wait_for(lambda: "docker" in running.host()["runtimes"])
        yield running


@pytest.fixture(autouse=True)
def as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """The market answers before a test, and all that the test rented on it ends after it."""
    if "renter" not in request.fixturenames:
        yield
        return
    renter: Renter = request.getfixturevalue("renter")
    renter.stack.must_answer()
    yield
    for job in renter.all("/jobs"):
        if job["state"] not in JOBS_OVER:
            with suppress(WindrowClientError):
                renter.ask("POST", f"/jobs/{job['id']}/cancel")
    mine = [one["id"] for one in renter.all("/clusters") if one["phase"] not in ENDED]
    for one in mine:
        with suppress(WindrowClientError):
            renter.ask("DELETE", f"/clusters/{one}")
    for one in mine:
        renter.phase(one, *ENDED)
    wait_for(lambda: all(slot["state"] in ("free", "faulted") for slot in renter.slots()))


@pytest.fixture
def person(renter: Renter, tmp_path: Path) -> Person:
    """Somebody at a shell of that market, in a folder that is empty."""
    return Person(renter, tmp_path)


@pytest.fixture
def stranger(tmp_path: Path) -> Person:
    """The same where no market answers: what is refused here needs none, and takes a second."""
    return Person(None, tmp_path)


@pytest.fixture(scope="package")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """Container images made here, gone at the end."""
    made = Images(tmp_path_factory.mktemp("images"))
    yield made
    made.remove()


@pytest.fixture(scope="package")
def image(images: Images) -> str:
    """Of one static binary, busybox."""
    return images.busybox()


@pytest.fixture(scope="package")
def python_image(images: Images) -> str:
    """Of Debian's Python."""
    return images.python()
