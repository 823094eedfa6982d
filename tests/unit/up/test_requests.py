"""`windrow up` answers its Masters: it kills an Access that it keeps, and that one starts again."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.waiting import poll_async
from windrow_master.accesses.failover_test.supervisor import SupervisorLine
from windrow_proto.errors import Conflict, Unavailable
from windrow_proto.ids import AccessId
from windrow_up import supervisor
from windrow_up.requests import SIMULATED_MAX, MasterRequests, Simulated
from windrow_up.supervisor import Daemon

SLEEPS = (sys.executable, "-c", "import time; time.sleep(600)")


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Daemon]:
    """A daemon that its keeper starts again."""
    daemon = Daemon("access-local-a", SLEEPS, tmp_path / "access.log")
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(supervisor.keep(daemon, lambda line: None))
        await poll_async(lambda: daemon.pid, what="it runs")
        yield daemon
        await supervisor.stop(daemon)


@contextmanager
def line_of(fd: int) -> Iterator[SupervisorLine]:
    """The Master's end, as if it had been handed to another process."""
    with closing(SupervisorLine(os.dup(fd))) as line:
        yield line


async def test_a_kept_access_is_named_killed_and_started_again(kept: Daemon) -> None:
    said: list[str] = []
    requests = MasterRequests(lambda: {"access_1": kept}, Simulated(), said.append)
    with line_of(requests.open()) as line:
        assert await line.accesses() == {"access_1": "access-local-a"}
        before = kept.pid
        assert await line.kill(AccessId("access_1")) == before
    await poll_async(lambda: kept.pid not in {None, before}, what="its keeper has started another")
    assert kept.restarts == 1
    assert said == [f"access-local-a (pid {before}) is killed, as a test that was asked for"]
    requests.close()


async def test_what_is_not_kept_or_does_not_run_is_refused(tmp_path: Path) -> None:
    gone = Daemon("access-local-b", SLEEPS, tmp_path / "access.log")
    requests = MasterRequests(lambda: {"access_2": gone}, Simulated(), lambda line: None)
    with line_of(requests.open()) as line:
        with pytest.raises(Conflict, match="did not start this relay"):
            await line.kill(AccessId("access_1"))
        with pytest.raises(Conflict, match="does not run at this moment"):
            await line.kill(AccessId("access_2"))
    requests.close()


async def test_the_wanted_number_of_simulated_hosts_is_told_and_set_within_bounds() -> None:
    simulated = Simulated(3)
    requests = MasterRequests(dict, simulated, lambda line: None)
    with line_of(requests.open()) as line:
        assert await line.simulated() == (3, SIMULATED_MAX)
        await line.simulate(50)
        assert simulated.wanted == 50
        await line.simulate(10**9)
        assert simulated.wanted == SIMULATED_MAX
    requests.close()


async def test_an_answer_that_a_dead_master_left_is_not_taken_for_ones_own() -> None:
    requests = MasterRequests(dict, Simulated(), lambda line: None)
    theirs = requests.open()
    with socket.socket(fileno=os.dup(theirs)) as dead:
        dead.send(b'{"number": 1, "kill": "access_1"}')
        with line_of(theirs) as line:
            assert await line.accesses() == {}
    requests.close()


async def test_words_that_are_no_question_are_said_and_the_requests_goes_on() -> None:
    said: list[str] = []
    requests = MasterRequests(dict, Simulated(), said.append)
    theirs = requests.open()
    with socket.socket(fileno=os.dup(theirs)) as strange:
        strange.send(b"[1, 2]")
        await poll_async(lambda: said, what="it is said")
    with line_of(theirs) as line:
        assert await line.accesses() == {}
    requests.close()


async def test_a_supervisor_that_is_gone_is_unavailable() -> None:
    mine, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    mine.close()
    with closing(theirs), line_of(theirs.fileno()) as line, pytest.raises(Unavailable, match="does not answer"):
        await line.accesses()
