"""An agent by hand on a running market: joined as any host, connected over real mTLS, and free to misbehave."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from tests.support.pki import TestAuthority
from tests.support.rental import Renter
from tests.trunk_support import FakeAgent
from tests.waiting import PATIENCE_S, poll_async
from windrow_proto.clock import SystemClock
from windrow_proto.enrol import Identity, IdentityFolder, JoinRequest, join
from windrow_proto.errors import LinkClosed, WindrowError
from windrow_proto.keys import TlsIdentity
from windrow_proto.link_grpc import GrpcDialer
from windrow_proto.model import Inventory, Kind, Lane
from windrow_proto.ports import FrameLink
from windrow_proto.samples import HOST_DEVICE, Sample, encode_batch
from windrow_proto.units import SECOND
from windrow_proto.wire_host import encode_inventory

ROUTE = 1


class Line:
    """A FrameLink in the shape of the trunk that FakeAgent speaks over."""

    def __init__(self, link: FrameLink) -> None:
        self.link = link
        self.down: dict[int, asyncio.Queue[Any]] = {ROUTE: asyncio.Queue()}
        self.ended: asyncio.Future[WindrowError] = asyncio.get_running_loop().create_future()

    async def open(self, agent: FakeAgent, generation: int = 1) -> int:
        return ROUTE

    async def say(self, *items: Any) -> None:
        for item in items:
            await self.link.send(item.frame)

    async def run(self) -> None:
        try:
            while True:
                self.down[ROUTE].put_nowait(await self.link.receive())
        except LinkClosed as closed:
            cause = closed.__cause__
            self.ended.set_result(cause if isinstance(cause, WindrowError) else closed)

    async def end(self, deadline_s: float = PATIENCE_S) -> WindrowError:
        """Wait until the other side has ended the stream; returns why."""
        async with asyncio.timeout(deadline_s):
            return await asyncio.shield(self.ended)


class RawAgent(FakeAgent):
    """A joined host; `greet_over(line)` says hello, after that everything is up to the test."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(SystemClock(), identity.subject_id, signing=identity.signing)
        self.identity = identity

    async def greet_over(self, line: Line) -> Any:
        return await self.greet(line, self.identity.master_public, generation=self.identity.generation)

    async def tell_inventory(self, **facts: Any) -> None:
        """A small host with one processor slot and the simulated runtime."""
        basic = Inventory(
            hostname="raw", cpu_model="By hand", cpu_count=4, memory_bytes=8 << 30, simulated=True,
            runtimes=("simulated",),
        )  # fmt: skip
        await self.record(Kind.INVENTORY, encode_inventory(replace(basic, **facts)))

    async def telemetry(self, sequence: int) -> None:
        """One valid batch under this sequence of origin."""
        values = {(HOST_DEVICE, 1): 1000 + sequence}
        body = encode_batch([Sample(self.clock.wall_ns(), values)])
        await self.record(Kind.TELEMETRY, body, Lane.TELEMETRY, sequence=sequence)


async def turned_away(agent: RawAgent, line: Line, **hello: Any) -> WindrowError:
    """Say hello and return why the stream ended, which may be before the hello is known to be sent."""
    with suppress(LinkClosed):
        await agent.connect(line, agent.identity.master_public, **hello)
    return await line.end()


def access_address(renter: Renter) -> str:
    """Returns the address at which one Access of the stack listens."""
    path = next(iter(sorted(renter.stack.data_dir.glob("access-*/access.json"))))
    return str(json.loads(path.read_text())["address"])


def new_token(renter: Renter, expires_in_s: int = 900) -> dict[str, Any]:
    """A join token for one host."""
    made: dict[str, Any] = renter.ask("POST", "/join-tokens", {"role": "host", "expires_in_s": expires_in_s})
    return made


async def joined(renter: Renter, folder: Path, name: str = "raw", token: str = "") -> Identity:
    """Join as a simulated host, by the code that agents join with."""
    text = token or str(new_token(renter)["join_token"])
    request = JoinRequest("host", name, simulated=True)
    identity = await asyncio.to_thread(join, IdentityFolder(folder), renter.stack.cli["https_url"], text, request)
    await poll_async(lambda: asyncio.to_thread(_is_listed, renter, identity.subject_id))
    return identity


def _is_listed(renter: Renter, host_id: str) -> bool:
    return any(host["id"] == host_id for host in renter.all("/hosts"))


@asynccontextmanager
async def dialled(identity: TlsIdentity, address: str) -> AsyncIterator[Line]:
    """An open stream to an Access; raises what refused it."""
    dialer = GrpcDialer(identity)
    try:
        line = Line(await dialer.connect(address, int(PATIENCE_S) * SECOND))
        failed: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(line.run())
            try:
                yield line
            except Exception as error:  # raised below, and not as one of a group
                failed = error
            finally:
                await line.link.close()
        if failed is not None:
            raise failed
    finally:
        await dialer.close()


def real_authority(data_dir: Path) -> TestAuthority:
    """The Master's own authority from its folder, to issue what the Master never would."""
    key = load_pem_private_key((data_dir / "identity" / "ca.key").read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    return TestAuthority(key, x509.load_pem_x509_certificate((data_dir / "identity" / "ca.pem").read_bytes()))


async def refusal(attempt: Callable[[], Any]) -> WindrowError:
    """Returns the refusal of `attempt`; fails when it was not."""
    try:
        await attempt()
    except LinkClosed as closed:
        cause = closed.__cause__
        return cause if isinstance(cause, WindrowError) else closed
    except WindrowError as error:
        return error
    raise AssertionError("it was let in")
