"""One `windrow-access run` in a process of its own, and a Master that sends every frame back where it came from."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.pki import TestAuthority, issue
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto import enrol, keys, link_grpc
from windrow_proto.ports import PeerFacts, TrunkLink
from windrow_proto.units import SECOND
from windrow_proto.v1 import link_pb2, services_pb2

SHIPPED = ("-m", "windrow_access")


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


def identity_folder(folder: Path, authority: TestAuthority) -> None:
    """Returns the folder that joining would have left, made by the test's own authority."""
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
    """A `windrow-access run` in a process of its own. program: what Python runs, before the command's arguments."""

    def __init__(self, folder: Path, trunk: str, *flags: str, program: tuple[str, ...] = SHIPPED) -> None:
        command = [sys.executable, *program, "run", "--data-dir", str(folder)]
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
    """One frame there and back over a connection of its own."""
    dialer = link_grpc.GrpcDialer(identity)
    try:
        link = await dialer.connect(address, int(PATIENCE_S) * SECOND)
        await link.send(link_pb2.Frame(lane=link_pb2.LANE_EVIDENCE, sequence=9, sealed=b"unopened"))
        async with asyncio.timeout(PATIENCE_S):
            return await link.receive()
    finally:
        await dialer.close()
