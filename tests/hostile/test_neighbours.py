"""Noisy neighbours: one account takes all it can of each shared thing, and another is served all the same."""

import asyncio
import ssl
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.listeners import GET, close_all, listening, small_receiver
from tests.unit.clusters.world import OWNER, STRANGER, principal
from tests.unit.jobs.world import World, once, world
from tests.waiting import poll_async
from windrow_master.app import serving
from windrow_master.app.admission import Admission, AdmissionLimits, Stage
from windrow_master.identity.authority import Authority
from windrow_master.jobs.controller import TRANSFERS
from windrow_master.jobs.model import JobRequest, JobState
from windrow_master.jobs.service import LIVING_MAX
from windrow_proto.errors import TooMany
from windrow_proto.ids import HostId
from windrow_proto.model import WorkloadPhase
from windrow_proto.units import SECOND

NOISY, QUIET = principal(STRANGER), principal(OWNER)


def count_tries(it: World) -> Counter[str]:
    """Counts the plans that jobs cost, by account."""
    tries: Counter[str] = Counter()
    clusters: Any = it.market.clusters
    create = clusters.create

    async def counted(who, *args, **kwargs):
        tries[who.account_id] += 1
        return await create(who, *args, **kwargs)

    clusters.create = counted
    return tries


# --- jobs ------------------------------------------------------------------------------------------------------------


@pytest.mark.row("F11")
async def test_a_job_that_fits_starts_in_the_next_look_whatever_another_account_has_waiting(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        asked = JobRequest(argv=("true",), array_size=LIVING_MAX, priority=100, gpus=8, gpu_model="H100")
        await it.jobs.submit(NOISY, asked)
        it.market.join()
        tries = count_tries(it)
        for _ in range(40):  # until each was due once, in the order of before
            it.clock.advance(SECOND)
            await it.tick()
        assert tries[STRANGER] <= 6  # one plan for all of them, at 1, 2, 4, 8, 16 and 30 s
        job = await it.submit(who=QUIET)
        await it.tick()
        assert (await it.jobs.get(QUIET, job.job_id)).job.state is JobState.STARTING


@pytest.mark.row("F11")
async def test_jobs_that_all_differ_take_no_more_than_their_turns(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        for extra in range(200):
            await it.submit(who=NOISY, memory_bytes=2**40 + extra, priority=100)
        for number in range(3):
            it.market.join(HostId(f"host_{number}"))
            job = await it.submit(who=QUIET)
            await it.tick()
            assert (await it.jobs.get(QUIET, job.job_id)).job.state is JobState.STARTING
            it.clock.advance(SECOND)


@pytest.mark.row("F11")
async def test_each_job_of_a_shape_says_why_it_waits_and_all_are_tried_when_there_is_room(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        it.market.join()
        asked = JobRequest(argv=("true",), array_size=8, cpus=4, image="busybox")
        first, *others = await it.jobs.submit(NOISY, asked)
        await it.tick()
        states = [(await it.jobs.get(NOISY, one.job.job_id)).job for one in (first, *others)]
        assert [one.state for one in states] == [JobState.STARTING] + [JobState.QUEUED] * 7
        assert all("cores" in one.reason or "host_a" in one.reason for one in states[1:])


@pytest.mark.row("F11")
async def test_an_account_has_a_bounded_number_of_jobs_whatever_way_they_come(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        (first, *_) = await it.jobs.submit(NOISY, JobRequest(argv=("true",), array_size=LIVING_MAX))
        await it.jobs.cancel(NOISY, first.job.job_id)
        await it.submit(who=NOISY)
        for again in (it.jobs.submit(NOISY, JobRequest(argv=("true",))), it.jobs.rerun(NOISY, first.job.job_id)):
            with pytest.raises(TooMany, match="1,000 jobs that have not ended"):
                await again
        await it.submit(who=QUIET)


@pytest.mark.row("F11")
async def test_hosts_that_answer_slowly_hold_up_their_own_accounts_jobs_only(tmp_path: Path) -> None:
    async with world(tmp_path) as it:
        answers = asyncio.Event()

        async def stuck(who, cluster_id, *, changed_only):
            if who.account_id == STRANGER:
                await answers.wait()
            return once(b"tar")

        it.inside.fetch_files = stuck
        whole = {"cpus": 4}  # of a host, so that each has one
        jobs = [await it.submit(who=NOISY, image="busybox", **whole) for _ in range(4 * TRANSFERS.limit)]
        jobs.append(await it.submit(who=QUIET, **whole))
        for number in range(len(jobs)):
            it.market.join(HostId(f"host_{number:03}"))
        async with asyncio.TaskGroup() as group:
            it.jobs.controller._group = group
            for _ in range(6):
                await it.market.fleet.refresh()
                await it.jobs.controller.tick()
                await it.queue.tick()
            for number in range(len(jobs)):
                host_id = HostId(f"host_{number:03}")
                spec = it.market.spec(host_id)
                it.market.report(spec, WorkloadPhase.EXITED, host_id, exit_code=0)

            async def is_brought_in() -> bool:
                await it.jobs.controller.tick()
                return (await it.jobs.get(QUIET, jobs[-1].job_id)).job.state is JobState.SUCCEEDED

            await poll_async(is_brought_in)
            assert (await it.jobs.get(NOISY, jobs[0].job_id)).job.state is JobState.CHECKPOINTING
            answers.set()


# --- connections -----------------------------------------------------------------------------------------------------

FEW = AdmissionLimits(in_all=64, per_network=16, reserve=16)


@pytest.mark.row("F13")
async def test_idle_connections_of_any_number_shut_nobody_out() -> None:
    async with listening(FEW) as it:
        held = [await it.connect() for _ in range(3 * FEW.in_all)]
        for _, writer in held:
            writer.write(b"GET / HTTP/1.1\r\nX: ")
        for _ in range(5):
            assert b" 200 " in await it.ask()
        await poll_async(lambda: it.server._listening.count <= FEW.in_all)
        close_all(held)


@pytest.mark.row("F13")
async def test_a_head_has_ten_seconds_and_a_keep_alive_connection_has_them_again() -> None:
    async with listening(FEW) as it:
        reader, writer = await it.connect()
        writer.write(GET)
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
        for piece in (b"GET /late HTTP/1.1\r\n", b"X-Drip: 1\r\n"):
            writer.write(piece)
        assert b" 408 " in (await reader.read())[-400:]
        assert "/late" not in it.asked
        writer.close()


@pytest.mark.row("F13")
@pytest.mark.parametrize("framing", [b"Content-Length: 900000", b"Transfer-Encoding: chunked"])
async def test_a_body_that_drips_is_ended_and_its_application_told(framing: bytes) -> None:
    async with listening(FEW) as it:
        reader, writer = await it.connect()
        writer.write(b"POST /body HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n\r\n")

        async def drips() -> bool:
            with suppress(ConnectionError):
                writer.write(b"1\r\nx\r\n")
            return "body broken off" in it.ended

        async with asyncio.TaskGroup() as group:  # what is written after the end resets the connection
            answer = group.create_task(reader.read(400))
            await poll_async(drips)
        assert b" 408 " in answer.result()
        close_all([(reader, writer)])


@pytest.mark.row("F13", "F14")
async def test_a_reader_that_stalls_is_ended_and_one_that_keeps_up_is_not() -> None:
    async with listening(FEW) as it:
        stalls = small_receiver(it.port)
        await asyncio.get_running_loop().sock_sendall(stalls, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await poll_async(lambda: "/large" in it.ended)
        stalls.close()
        reader, writer = await it.connect()
        writer.write(b"GET /large HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert len(await reader.read()) > 2_000 * 65_536
        writer.close()


@pytest.mark.row("F13")
async def test_who_only_opens_tls_connections_shuts_nobody_out(tmp_path: Path) -> None:
    authority = Authority.make(tmp_path, time.time_ns())
    identity = authority.issue_master(serving.tls_key(tmp_path), ("localhost",), time.time_ns())
    trust = ssl.create_default_context(cadata=identity.ca_pem.decode())
    async with listening(FEW, tls=serving.write_tls(tmp_path, identity)) as it:
        held = [await it.connect() for _ in range(2 * FEW.in_all)]
        reader, writer = await asyncio.open_connection("127.0.0.1", it.port, ssl=trust, server_hostname="localhost")
        writer.write(GET)
        assert b" 200 " in await reader.readline()
        async with asyncio.timeout(20):  # the product's ten seconds are two here
            ended = [await reader.read() for reader, _ in held]
        assert not any(ended)
        close_all([*held, (reader, writer)])


@pytest.mark.row("F13")
async def test_a_request_with_two_lengths_is_refused_and_what_follows_it_is_not_served() -> None:
    async with listening(FEW) as it:
        smuggled = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
        head = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
        answer = await it.ask(head + b"0\r\n\r\n" + smuggled)
        assert b" 400 " in answer and it.asked == []


@pytest.mark.row("F13")
async def test_pipelined_requests_are_served_one_after_the_other_and_all_of_them() -> None:
    async with listening(FEW) as it:
        reader, writer = await it.connect()
        writer.write(GET * 50)
        for _ in range(50):
            await reader.readuntil(b"HTTP/1.1 200 OK")
        assert len(it.asked) == 50
        writer.close()


@pytest.mark.row("F13")
async def test_who_pours_on_after_the_answer_is_ended() -> None:
    async with listening(FEW) as it:
        streams = await it.connect()
        streams[1].write(b"POST /small HTTP/1.1\r\nHost: x\r\nContent-Length: 999999999\r\n\r\n")
        try:
            with pytest.raises(ConnectionError):
                async with asyncio.timeout(20):
                    while True:
                        streams[1].write(bytes(65_536))
                        await streams[1].drain()
        finally:
            close_all([streams])
        assert it.server._listening.cut["a body whose request was answered"] == 1, "said once"


@pytest.mark.row("F13")
def test_connections_that_come_and_go_have_a_rate() -> None:
    admission = Admission(AdmissionLimits(burst=3, refill_ns=SECOND))

    def come(now_ns: int, address: str = "192.0.2.1") -> bool:
        verdict = admission.come((address, now_ns), address, now_ns)
        admission.leave((address, now_ns))
        return verdict.is_admitted

    assert [come(n) for n in range(6)] == [True, True, True, False, False, False]
    assert come(0, "192.0.2.2") and come(0, "127.0.0.1")
    assert [come(SECOND + n) for n in range(3)] == [True, False, False]


@pytest.mark.row("F13")
def test_one_network_has_its_own_number_and_rate_and_this_machine_a_reserve() -> None:
    admission = Admission(AdmissionLimits(in_all=10, per_network=4, reserve=3, burst=6, refill_ns=SECOND))
    flood = [(f"192.0.2.{n // 5}", n) for n in range(20)]
    for key in flood:
        admission.come(key, key[0], 0)
        admission.stage(key, Stage.BUSY)
    assert admission.count == 7
    assert not admission.come(("198.51.100.1", 1), "198.51.100.1", 0).is_admitted
    assert admission.come(("127.0.0.1", 1), "127.0.0.1", 0).is_admitted
    assert admission.come(("::1", 1), "::1", 0).is_admitted
    one_network = [admission.come(("a", n), f"2001:db8::{n:x}", 0) for n in range(20)]
    assert not any(verdict.is_admitted for verdict in one_network)
