"""One contract for the way to a port of a workload: its own is found, whatever else the host has is not."""

import asyncio

import pytest

from tests.support.places import DOCKER, PROCESSES, Place, log_of, new_id, no_progress, only, run_to_end
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.errors import Conflict, NotFound
from windrow_proto.model import WorkloadSpec

LISTENING = """import socket
one = socket.create_server(("127.0.0.1", 0)); print(one.getsockname()[1], flush=True)
while True:
    connection, _ = one.accept()
    connection.recv(99); connection.sendall(b"of the workload"); connection.close()"""


async def started(place: Place, spec: WorkloadSpec) -> WorkloadSpec:
    await place.runtime.prepare(spec, no_progress)
    await place.runtime.start(spec.workload_id)
    return spec


async def said_at(place: Place, spec: WorkloadSpec, port: int) -> bytes:
    (address, *_) = await place.runtime.reach(spec.workload_id, port)
    async with asyncio.timeout(PATIENCE_S):
        raw = await place.runtime.dial(spec.workload_id, *address)
        reader, writer = await asyncio.open_connection(sock=raw)
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        said = await reader.read()
    writer.close()
    return said


async def port_of(place: Place, spec: WorkloadSpec) -> int:
    async def first_line() -> bytes:
        return (await log_of(place, spec.workload_id))[0].partition(b"\n")[0]

    return int(await poll_async(first_line))


async def test_nothing_is_reached_in_what_is_not_there_or_does_not_run(place: Place):
    with pytest.raises(NotFound):
        await place.runtime.reach(new_id(), 80)
    spec = place.spec("echo", "over")
    await run_to_end(place, spec)
    with pytest.raises(Conflict):
        await place.runtime.reach(spec.workload_id, 80)


@only("simulated")
async def test_a_simulated_workload_is_reached_nowhere(place: Place):
    spec = await started(place, place.spec())
    with pytest.raises(Conflict, match="simulated"):
        await place.runtime.reach(spec.workload_id, 80)


@only(PROCESSES)
async def test_a_port_of_the_workloads_own_is_reached(place: Place):
    spec = await started(place, place.spec("python3", "-u", "-c", LISTENING))

    assert await said_at(place, spec, await port_of(place, spec)) == b"of the workload"


@only(PROCESSES)
async def test_a_command_that_was_started_beside_it_is_of_the_workload(place: Place):
    spec = await started(place, place.spec("sleep", "300"))
    session = await place.runtime.exec(spec.workload_id, ("python3", "-u", "-c", LISTENING))
    try:
        said = await session.read()
        assert said is not None
        assert await said_at(place, spec, int(said[1])) == b"of the workload"
    finally:
        await session.close()


@only(PROCESSES)
async def test_a_port_of_the_host_or_of_another_workload_is_not_reached(place: Place):
    spec, other = [
        await started(place, place.spec(*argv)) for argv in (("sleep", "300"), ("python3", "-u", "-c", LISTENING))
    ]
    port = await port_of(place, other)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        for wrong in (port, server.sockets[0].getsockname()[1]):
            with pytest.raises(Conflict, match=str(wrong)):
                await place.runtime.reach(spec.workload_id, wrong)
    assert await said_at(place, other, port) == b"of the workload"


@only(DOCKER)
async def test_a_port_of_a_container_is_reached_though_it_was_not_published(place: Place):
    spec = await started(place, place.spec("httpd", "-f", "-p", "8080", "-h", "/"))

    async def answered() -> bytes:
        try:
            return await said_at(place, spec, 8080)
        except ConnectionError:
            return b""

    assert (await poll_async(answered)).startswith(b"HTTP/1.")
