"""A renter's process attacks the host it is on, as a container does (test_container.py): none of the tries may pass.

The process is the shipped runtime's own, in its sandbox and its network. Around it is what a container must not reach
either; that all of it is there to be found, the control shows, in which the probes run on the host itself.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.attacks.surroundings import (
    HOME,
    MAY,
    NEIGHBOURS,
    PROBES_MIN,
    SIGHTS,
    Surroundings,
    compiled,
    passed,
    results,
    served,
    surroundings,
    told,
)
from tests.services import need
from tests.support.namespaces import need_networks
from tests.support.places import Place, log_of, no_progress, until_ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for service in ("bubblewrap", "gcc", "pasta"):
        need(service)
    need_networks()
    return compiled(tmp_path_factory.mktemp("probes"))


@pytest.fixture
async def host(probes: Path, tmp_path: Path) -> AsyncIterator[Surroundings]:
    with surroundings(tmp_path) as made, served("2375,5353,8080", HOME, LOOPBACK):
        yield made


@pytest.fixture
async def place(host: Surroundings, tmp_path: Path) -> AsyncIterator[Place]:
    here = Place("bubblewrap", tmp_path)
    yield here
    for run in await here.runtime.list():
        await here.runtime.remove(run.workload_id)


@pytest.mark.proves("a renter's process tries 120 ways to the host, its network and its neighbours: none passes")
async def test_nothing_that_a_renters_process_tries_passes(probes: Path, host: Surroundings, place: Place) -> None:
    tried = await _tried(place, probes, host, "all")

    assert len(tried) >= PROBES_MIN
    assert {name for name, said in tried.items() if said == "passed"} == MAY


async def test_what_the_probes_look_for_is_there_to_be_found(probes: Path, host: Surroundings) -> None:
    found = passed(told(str(probes), *host.words("looks", HOME, LOOPBACK)))

    assert found >= NEIGHBOURS | SIGHTS | {"the host by its bridge", "another renter's container"}


async def _tried(place: Place, probes: Path, host: Surroundings, what: str) -> dict[str, str]:
    """Run the probes in a process of a renter; what each try came to."""
    spec = place.spec("./probes", *host.words(what, HOME, LOOPBACK))
    await place.runtime.prepare(spec, no_progress)
    work = await place.runtime.work_folder(spec.workload_id)
    assert work is not None
    (work / "probes").write_bytes(probes.read_bytes())
    (work / "probes").chmod(0o755)
    await place.runtime.start(spec.workload_id)
    await until_ended(place, spec.workload_id)
    return results((await log_of(place, spec.workload_id))[0].decode())
