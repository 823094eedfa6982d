"""A renter's process attacks the host it is on, as a container does (test_container.py): none of the tries may pass.

The process is the shipped runtime's own, in its sandbox and its network. Around it is what a container must not reach
either; that all of it is there to be found, the control shows, in which the probes run on the host itself.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.attacks.test_container import LEFT, OUTSIDE, PROBES_MIN, RIGHT, _end, _ip, _passed, _results, _served, _told
from tests.services import need
from tests.support.namespaces import namespace, need_networks
from tests.support.places import Place, log_of, no_progress, until_ended

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

LOOPBACK = "127.0.0.1"


@pytest.fixture(scope="module")
def probes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("bubblewrap")
    need("gcc")
    need("pasta")
    need_networks()
    made = tmp_path_factory.mktemp("probes") / "probes"
    source = Path(__file__).parent / "probes.c"
    subprocess.run(["gcc", "-static", "-O1", "-o", str(made), str(source)], check=True, timeout=60)
    return made


@pytest.fixture
def neighbourhood() -> Iterator[None]:
    """A network behind this host with everything in it that a workload must not reach, and servers on the host, on its
    loopback as well."""
    with ExitStack() as cleanup:
        far = cleanup.enter_context(namespace())
        _ip("link", "add", "wprobe1", "type", "veth", "peer", "name", "cable", "netns", far.path)
        cleanup.callback(_ip, "link", "delete", "wprobe1")
        _ip("address", "add", f"{LEFT}/24", "dev", "wprobe1")
        _ip("link", "set", "wprobe1", "up")
        for address in (*RIGHT, OUTSIDE):
            far.call("ip", "address", "add", address, "dev", "cable")
        far.call("ip", "link", "set", "cable", "up")
        far.call("ip", "route", "add", "default", "via", LEFT)
        for address in (*RIGHT[1:], OUTSIDE):
            _ip("route", "replace", address, "via", RIGHT[0].split("/")[0])
        with far.entered():
            cleanup.callback(_end, _served("80,25,587,53", *(one.split("/")[0] for one in (*RIGHT, OUTSIDE))))
        cleanup.callback(_end, _served("2375,5353,80", LEFT, LOOPBACK))
        yield


@pytest.fixture
async def place(tmp_path: Path):
    here = Place("bubblewrap", tmp_path)
    yield here
    for run in await here.runtime.list():
        await here.runtime.remove(run.workload_id)


@pytest.mark.proves("a renter's process tries 70 ways to the host, its network and its neighbours: none passes")
async def test_nothing_that_a_renters_process_tries_passes(probes: Path, neighbourhood: None, place: Place) -> None:
    tried = await _tried(place, probes, "all")

    assert len(tried) >= PROBES_MIN
    assert {name: said for name, said in tried.items() if said == "passed"} == {}
    assert await _tried(place, probes, "outside") == {"outside": "passed"}


def test_what_the_probes_look_for_is_there_to_be_found(probes: Path, neighbourhood: None) -> None:
    open_ones = _passed(_told(str(probes), "network", LEFT, LOOPBACK))

    assert {"metadata", "metadata of tasks", "metadata by datagram", "the host by its bridge"} <= open_ones
    assert {"the host by its other address", "a neighbour in 10/8", "a neighbour in 192.168/16"} <= open_ones
    assert {"a neighbour in 172.16/12", "a neighbour in 100.64/10", "a neighbour's names", "a mail server"} <= open_ones
    assert "another renter's container" in open_ones, "what listens on the host's loopback"


async def _tried(place: Place, probes: Path, what: str) -> dict[str, str]:
    """Run the probes in a process of a renter; what each try came to."""
    spec = place.spec("./probes", what, LEFT, LOOPBACK)
    await place.runtime.prepare(spec, no_progress)
    work = await place.runtime.work_folder(spec.workload_id)
    assert work is not None
    (work / "probes").write_bytes(probes.read_bytes())
    (work / "probes").chmod(0o755)
    await place.runtime.start(spec.workload_id)
    await until_ended(place, spec.workload_id)
    return _results((await log_of(place, spec.workload_id))[0].decode())
