"""One promise of every runtime: no workload reads what the agent keeps, whoever the agent is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.services import need
from tests.support.confined import ORDINARY, STAY, Confined, confined
from tests.support.places import BUBBLEWRAP, CONTAINERS, Place, log_of, only, run_to_end

KEPT = (
    *("cli.json", "agent.json", "identity/identity.json", "identity/host.key", "identity/sign.key", "identity/ca.key"),
    *("journal/journal.1", "spool/evidence.1", "regions.bin", "process/other/launch.json", "docker/note.json"),
)
"""Names as an agent and a market that runs beside it have them."""
PLANTED = "PLANTED-keys-of-the-agent"


def looking(folder: Path) -> str:
    """The program of a workload: by each path, by links of its own, and by looking for the names everywhere else."""
    paths = " ".join(str(folder / name) for name in KEPT)
    ways = f"for f in {paths}; do cat $f /proc/1/root$f /proc/self/root$f; ln -s $f link; cat link; rm link; done"
    marked = " -o ".join(f"-name '{name.rpartition('/')[2]}.planted'" for name in KEPT)
    return f"({ways}) 2>/dev/null; find / {marked} 2>/dev/null | while read f; do echo FOUND $f; done; echo looked"


@only(("simulated", BUBBLEWRAP, *CONTAINERS))
async def test_no_workload_reads_what_the_agent_keeps(place: Place, tmp_path: Path) -> None:
    _plant(tmp_path)
    spec = place.spec("sh", "-c", looking(tmp_path))

    await run_to_end(place, spec)

    log = (await log_of(place, spec.workload_id))[0].decode()
    assert PLANTED not in log and "FOUND" not in log
    assert not place.is_real or log.endswith("looked\n")


@pytest.fixture
def host() -> Iterator[Confined]:
    need("bubblewrap")
    with confined(ORDINARY, PLANTED) as found:
        _plant(found.folder)
        for path in found.folder.rglob("*"):
            os.chown(path, ORDINARY, ORDINARY)
        yield found


def test_no_process_reads_what_an_agent_keeps_that_is_not_root(host: Confined) -> None:
    said = host.run(["sh", "-c", f"{looking(host.folder)}; {STAY}"], beside=["sh", "-c", looking(host.folder)])
    for log in (said.log, said.beside):
        assert PLANTED not in log and "FOUND" not in log and "looked\n" in log


def _plant(folder: Path) -> None:
    """Each file twice: by its own name, and by one that is nowhere else."""
    for name in KEPT:
        for path in (folder / name, folder / f"{name}.planted"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(PLANTED)
            path.chmod(0o600)
