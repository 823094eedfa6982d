"""Bubblewrap cannot make a sandbox while mounts of the host go away; then it is tried again, and nothing runs twice."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.places import Place, log_of, no_progress, only, run_to_end
from windrow_agent.runtimes import sandbox, shim

AGAIN = b"[windrow: the sandbox could not be made; trying again]"
FALTERING = """#!/bin/sh
left=$(cat {count})
[ "$left" -le 0 ] && exec {real} "$@"
echo $((left - 1)) > {count}
echo "bwrap: Can't bind mount /oldroot/ on /newroot/: Unable to apply mount flags: Invalid argument" >&2
exit 1
"""


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], object]]:
    """Has bubblewrap fail so many times from now on, as the real one does when a mount vanishes. Where the user of
    workloads can run it, and count."""
    with tempfile.TemporaryDirectory(prefix="windrow-test-", dir="/var/tmp") as name:
        folder, count = Path(name), Path(name) / "left"
        folder.chmod(0o755)
        program = folder / "bwrap"
        program.write_text(FALTERING.format(count=count, real=shutil.which("bwrap")))
        program.chmod(0o755)
        count.write_text("0")
        count.chmod(0o666)
        monkeypatch.setattr(sandbox, "SEARCH_PATH", f"{folder}:{sandbox.SEARCH_PATH}")
        yield lambda times: count.write_text(str(times))


@only("bubblewrap")
async def test_a_sandbox_that_could_not_be_made_is_made_at_another_try_and_its_command_runs_once(place: Place, fails):
    fails(shim.LAUNCHES - 1)
    facts = await place.runtime.facts()
    assert facts.version == "bubblewrap", "a host is not taken for one without bubblewrap"

    fails(shim.LAUNCHES - 1)
    spec = place.spec("sh", "-c", "echo run; exit 3")
    run = await run_to_end(place, spec)

    log, _ = await log_of(place, spec.workload_id)
    assert (run.exit_code, log.count(AGAIN), log.count(b"run\n")) == (3, shim.LAUNCHES - 1, 1)


@only("bubblewrap")
async def test_a_sandbox_that_can_never_be_made_ends_its_workload_and_says_why(place: Place, fails):
    fails(0)
    await place.runtime.facts()
    fails(1000)
    spec = place.spec("sh", "-c", "echo run")

    run = await run_to_end(place, spec)

    log, _ = await log_of(place, spec.workload_id)
    assert run.exit_code == shim.NO_SANDBOX
    assert b"Can't bind mount" in log and b"run" not in log.replace(b"windrow", b"")
    assert not (await place.runtime.facts()).is_usable, "what failed is no longer offered"
    fails(0)
    assert (await place.runtime.facts()).is_usable


@only("bubblewrap")
async def test_a_command_that_ends_as_bubblewrap_does_when_it_fails_is_not_repeated(place: Place, fails):
    fails(0)
    spec = place.spec("sh", "-c", "echo run; exit 1")

    run = await run_to_end(place, spec)

    log, _ = await log_of(place, spec.workload_id)
    assert (run.exit_code, log) == (shim.UNMADE, b"run\n")


@only("bubblewrap")
async def test_a_command_beside_a_workload_has_its_input_after_another_try(place: Place, fails):
    fails(0)
    spec = place.spec()
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    fails(2)
    session = await place.runtime.exec(spec.workload_id, ("sh", "-c", "read line; echo got $line"))
    await session.write(b"this\n")
    pieces = []
    while (piece := await session.read()) is not None:
        pieces.append(piece)
    await session.close()
    assert b"".join(data for stream, data in pieces if stream == 1) == b"got this\n"
