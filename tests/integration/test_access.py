"""A real Access between a real gRPC Master's trunk and real agents' streams, with mutual TLS."""

import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.one_access import EchoMaster, Running, echo, identity_folder
from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import poll_async
from windrow_proto import link_grpc
from windrow_proto.errors import LinkClosed

HOST = "host_" + "a" * 32


@pytest.fixture
async def authority() -> TestAuthority:
    return make_ca()


@pytest.fixture
async def master(authority: TestAuthority) -> AsyncIterator[tuple[EchoMaster, str]]:
    made = EchoMaster()
    server = await link_grpc.serve_trunk(made, issue(authority, "master", "master"))
    yield made, server.address
    await server.stop(0)


@pytest.mark.proves("frames through a real Access process with mutual TLS")
async def test_frames_go_to_the_master_and_back(
    tmp_path: Path, authority: TestAuthority, master: tuple[EchoMaster, str]
) -> None:
    identity_folder(tmp_path, authority)
    access = Running(tmp_path, master[1])
    try:
        address = await access.address()
        assert (await echo(address, issue(authority, "host", HOST))).sealed == b"unopened"
        assert master[0].opened == [HOST]
        assert master[0].hellos[0].region == "test-1"
    finally:
        assert access.stop() == 0


async def test_foreign_and_wrong_certificates_are_turned_away(
    tmp_path: Path, authority: TestAuthority, master: tuple[EchoMaster, str]
) -> None:
    identity_folder(tmp_path, authority)
    access = Running(tmp_path, master[1])
    try:
        address = await access.address()
        strangers = (
            issue(make_ca(), "host", HOST),
            issue(authority, "host", HOST, lifetime_s=-60),
            issue(authority, "access", "access_" + "c" * 32),
        )
        for stranger in strangers:
            with pytest.raises(LinkClosed):
                await echo(address, stranger)
        assert master[0].opened == []
    finally:
        access.stop()


async def test_several_workers_share_one_port_and_one_that_dies_is_replaced(
    tmp_path: Path, authority: TestAuthority, master: tuple[EchoMaster, str]
) -> None:
    identity_folder(tmp_path, authority)
    access = Running(tmp_path, master[1], "--workers", "2")

    async def both() -> bool:
        return len({hello.worker for hello in master[0].hellos}) == 2

    try:
        address = await access.address()
        await poll_async(both, what="both workers to attach")
        host = issue(authority, "host", HOST)
        for _ in range(8):
            assert (await echo(address, host)).sealed == b"unopened"
        victim = json.loads(access.record.read_text())["pid"]
        before = _hellos(master[0], worker=0)
        os.kill(victim, signal.SIGKILL)

        await poll_async(lambda: _hellos(master[0], worker=0) > before, what="the dead worker to be replaced")
    finally:
        assert access.stop() == 0


def _hellos(master: EchoMaster, worker: int) -> int:
    return [hello.worker for hello in master.hellos].count(worker)
