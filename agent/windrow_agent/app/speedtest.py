"""Runs speedtest-cli, an extra, as a child process with a deadline, for an owner who asks why the host's line is slow.

Nothing that it says leaves this machine: what the market counts, an Access measures itself (link/bandwidth_probe.py).
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from windrow_agent.core.speedtest import (
    INTERNET,
    MODULE,
    SpeedClaim,
    arguments,
    environment,
    failure,
    read_claim,
    sentence,
)
from windrow_proto.errors import DeadlineExceeded, Unavailable, WindrowError
from windrow_proto.units import KIB

DEADLINE_S: Final = 120.0
"""For one run: ten seconds each way, and up to a minute until its servers were found."""
OUTPUT_BYTES_MAX: Final = 64 * KIB
"""Of its answer, and of what it complains of; they are of some hundred bytes."""
ONLY_CLAIMED: Final = (
    "This is what speedtest-cli says on this host. The market counts what a relay measures: "
    "windrow-agent doctor --bandwidth"
)


def command(minis: Sequence[str], surroundings: Mapping[str, str], is_json_wanted: bool) -> int:
    """Measure each way, one after the other, and print what was found; 1 if any failed. Raises Unavailable without the
    extra. minis: each as of `arguments`; surroundings: the environment, without proxies."""
    if find_spec(MODULE) is None:
        # The agent that brings its own Python brings no pip: the system's puts it beside the agent.
        beside = f"python3 -m pip install --target {Path(__file__).parents[2]}"
        how = f"{sys.executable} -m pip install" if find_spec("pip") is not None else beside
        raise Unavailable(f"speedtest-cli is not installed; it is an extra: {how} speedtest-cli")
    found: list[dict[str, object]] = []
    is_good = True
    for mini in minis:
        try:
            claim = asyncio.run(measure(mini, surroundings))
            found.append(asdict(claim))
            words = sentence(claim)
        except WindrowError as error:
            found.append({"path": mini or INTERNET, "failed": error.detail})
            words, is_good = f"{mini or INTERNET}: {error.detail}", False
        if not is_json_wanted:
            print(words, flush=True)
    print(json.dumps(found, indent=1) if is_json_wanted else ONLY_CLAIMED)
    return 0 if is_good else 1


async def measure(mini: str, surroundings: Mapping[str, str]) -> SpeedClaim:
    """One run; raises Unavailable or DeadlineExceeded. The internet is reached as the environment says, by its proxies;
    an Access without them."""
    given = {**surroundings, **environment(mini)} if mini else None
    status, said, complaint = await run((sys.executable, *arguments(mini)), given, DEADLINE_S)
    if status != 0 or not said:
        raise Unavailable(failure(complaint, mini))
    return read_claim(said, mini or INTERNET)


async def run(command: Sequence[str], given: Mapping[str, str] | None, deadline_s: float) -> tuple[int, bytes, bytes]:
    """Run a child in a group of its own: its status, and what it said on both outputs. At the deadline, where it says
    too much or where we are cancelled, the whole group is killed. Raises DeadlineExceeded, Unavailable.

    given: its environment; None: ours.
    """
    pipe, nowhere = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    child = await asyncio.create_subprocess_exec(
        *command, stdin=nowhere, stdout=pipe, stderr=pipe, env=given, start_new_session=True
    )
    assert child.stdout is not None and child.stderr is not None, "both are pipes"
    is_whole = False

    def kill() -> None:
        # Until both outputs have ended somebody of its group holds them: its number is no other group's yet.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    try:
        async with asyncio.timeout(deadline_s), asyncio.TaskGroup() as group:
            said = group.create_task(_all_of(child.stdout, kill))
            complaint = group.create_task(_all_of(child.stderr, kill))
            status = await child.wait()
        is_whole = True
    except TimeoutError:
        raise DeadlineExceeded(f"speedtest-cli took longer than {deadline_s:g} s and was ended.") from None
    finally:
        if not is_whole:
            kill()
            await child.wait()
    return status, said.result(), complaint.result()


async def _all_of(stream: asyncio.StreamReader, kill: Callable[[], None]) -> bytes:
    """To its end; who says more than so much is killed."""
    try:
        said = await stream.readexactly(OUTPUT_BYTES_MAX)
    except asyncio.IncompleteReadError as ended:
        return ended.partial
    kill()
    while await stream.read(OUTPUT_BYTES_MAX):
        pass  # what it had said already: a pipe that nobody reads does not end, and neither does the wait for the child
    return said
