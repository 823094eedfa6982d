"""A real Access between a real gRPC Master's trunk and real agents' streams, with mutual TLS."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.pki import TestAuthority, issue, make_ca
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto import enrol, keys, link_grpc
from windrow_proto.errors import LinkClosed
from windrow_proto.ports import PeerFacts, TrunkLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2, services_pb2

HOST = "host_" + "a" * 32


class EchoMaster:
    """Welcomes trunks and sends every frame back where it came from."""

    def __init__(self) -> None:
        self.hellos: list[services_pb2.TrunkHello] = []
        self.opened: list[str] = []

    async def attached(self, peer: PeerFacts, trunk: TrunkLink) -> None:
        while True:
            for item in (await trunk.receive()).items:
                answer = self.answer(item)
                if answer is not None:
                    await trunk.send(services_pb2.TrunkBatch(items=[answer]))

    def answer(self, item: services_pb2.TrunkItem) -> services_pb2.TrunkItem | None:
        match item.WhichOneof("what"):
            case "hello":
                self.hellos.append(item.hello)
                return services_pb2.TrunkItem(welcome=services_pb2.TrunkWelcome(epoch=1, leader=True))
            case "opened":
                self.opened.append(item.opened.host_id)
                return None
            case "frame":
                return services_pb2.TrunkItem(route=item.route, frame=item.frame)
            case _:
                return None


@pytest.fixture
async def authority() -> TestAuthority:
    return make_ca()


@pytest.fixture
async def master(authority: TestAuthority) -> AsyncIterator[tuple[EchoMaster, str]]:
    made = EchoMaster()
    server = await link_grpc.serve_trunk(made, issue(authority, "master", "master"))
    yield made, server.address
    await server.stop(0)


def identity_folder(folder: Path, authority: TestAuthority) -> None:
    """What joining would have left, made by the test's own authority."""
    tls = issue(authority, "access", "access_" + "b" * 32)
    answer = {
        "id": "access_" + "b" * 32,
        "generation": 1,
        "not_after": "",
        "master_public": "",
        "certificate_pem": tls.certificate_pem.decode(),
    }
    made = enrol.IdentityFolder(folder / "identity")
    made.store("https://127.0.0.1:1", answer, tls.ca_pem, keys.TlsKey.from_pem(tls.key_pem))


class Running:
    """A `windrow-access run` in a process of its own."""

    def __init__(self, folder: Path, trunk: str, *flags: str) -> None:
        command = [sys.executable, "-m", "windrow_access.main", "run", "--data-dir", str(folder)]
        command += ["--listen", "127.0.0.1:0", "--region", "test-1", "--trunk", trunk, *flags]
        self.log = (folder / "access.log").open("wb")
        self.process = subprocess.Popen(command, stderr=self.log, start_new_session=True)
        self.record = folder / "access.json"

    async def address(self) -> str:
        await poll_async(self._written, what="the Access to attach")
        address: str = json.loads(self.record.read_text())["address"]
        return address

    async def _written(self) -> bool:
        return self.record.exists()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.log.close()


async def echo(address: str, identity: keys.TlsIdentity) -> link_pb2.Frame:
    dialer = link_grpc.GrpcDialer(identity)
    try:
        link = await dialer.connect(address, int(PATIENCE_S) * SECOND)
        await link.send(link_pb2.Frame(lane=link_pb2.LANE_EVIDENCE, sequence=9, sealed=b"unopened"))
        async with asyncio.timeout(PATIENCE_S):
            return await link.receive()
    finally:
        await dialer.close()


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
