"""The providers that the contract of backends is played against: the cloud in memory, moto's EC2, and a real sshd.

Each goes wrong on order in the same words, and says how far its adapter is tried by it.
"""

import asyncio
import itertools
import os
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from tests import services
from tests.master_support import ManualClock
from tests.support.memory_backend import Fault, MemoryBackend, MemoryCloud, Planned
from tests.support.modal_cloud import TOKEN_ID, TOKEN_SECRET, ModalCloud, modal_cloud
from tests.support.moto_cloud import SECRET_KEY, Cut, MotoCloud, moto_cloud, price_book
from tests.support.second_host import SecondHost, bridge, need_namespaces, second_host
from windrow_master.hybrid.backends.bootstrap import FOLDER
from windrow_master.hybrid.backends.ec2 import Ec2
from windrow_master.hybrid.backends.kinds import Level
from windrow_master.hybrid.backends.port import Backend, MachineOffer, Order, PurchaseId, RefusedFor
from windrow_master.hybrid.backends.ssh import SshBox, read_settings
from windrow_master.hybrid.runs.modal import Modal, ModalSettings
from windrow_master.hybrid.runs.port import Start
from windrow_proto.clock import SystemClock
from windrow_proto.ports import Clock
from windrow_proto.units import HOUR, MINUTE, Microcents

numbers = itertools.count(1)
JOIN_TOKEN: Final = "wj_" + "x" * 40 + "." + "0" * 32


class World(ABC):
    """A provider under test. level: of an adapter that passes here; None: the twin, which is no kind. secrets: words
    that may be in no log. reasons: for which this provider refuses on order."""

    kind: str
    level: Level | None
    clock: Clock
    secrets: tuple[str, ...] = ()
    reasons: tuple[RefusedFor, ...] = tuple(RefusedFor)
    user_data: str = f"#!/bin/sh\necho booted; : {JOIN_TOKEN}\n"

    @abstractmethod
    def backend(self) -> Backend:
        """A new connection."""

    @abstractmethod
    def stranger(self) -> Backend:
        """A connection with credentials that are refused."""

    @abstractmethod
    def then(self, call: str, fault: Fault) -> None:
        """The next such call goes so: LOST or UNDONE."""

    @abstractmethod
    def refusing(self, reason: RefusedFor) -> AbstractContextManager[None]:
        """Meanwhile buying is refused."""

    @abstractmethod
    def wait(self) -> None:
        """The lag of lists passes, and what ends has the time for it."""


def order(world: World, offer: MachineOffer, market: str, **more: Any) -> Order:
    """A purchase of its own."""
    known: dict[str, Any] = {
        "purchase_id": PurchaseId(f"purchase-{next(numbers)}"),
        "market_id": market,
        "epoch": 7,
        "offer": offer,
        "user_data": world.user_data,
        "dearest_per_hour": Microcents(offer.price_per_hour * 11 // 10),
        "ends_at_ns": world.clock.wall_ns() + HOUR,
    }
    return Order(**(known | more))


class MemoryWorld(World):
    """The twin. Its lists are as old as they may be."""

    kind, level = "memory", None

    def __init__(self) -> None:
        self.clock = self.time = ManualClock()
        self.faults = Planned()
        self.cloud = MemoryCloud(self.clock.wall_ns, self.faults)

    def backend(self) -> Backend:
        return MemoryBackend(self.cloud, self.clock)

    def stranger(self) -> Backend:
        self.faults.then("provision", Fault.AUTH)
        return self.backend()

    def then(self, call: str, fault: Fault) -> None:
        self.faults.then(call, fault)

    def refusing(self, reason: RefusedFor) -> AbstractContextManager[None]:
        self.faults.then("provision", Fault(reason.value))
        return nullcontext()

    def wait(self) -> None:
        self.time.advance(2 * MINUTE)


class Ec2World(World):
    """boto3 against moto. Its lists lag until `wait`."""

    kind, level, secrets = "ec2", Level.EMULATOR, (SECRET_KEY, JOIN_TOKEN)
    ACTIONS: Final = {"provision": "RunInstances", "terminate": "TerminateInstances", "describe": "DescribeInstances"}
    CODES: Final = {
        RefusedFor.CAPACITY: "InsufficientInstanceCapacity",
        RefusedFor.QUOTA: "VcpuLimitExceeded",
        RefusedFor.AUTH: "UnauthorizedOperation",
        RefusedFor.PRICE: "SpotMaxPriceTooLow",
        RefusedFor.LIMIT: "RequestLimitExceeded",
    }

    def __init__(self, cloud: MotoCloud) -> None:
        self.clock, self.cloud = SystemClock(), cloud
        cloud.reset()
        cloud.lag()

    def backend(self, **settings: Any) -> Ec2:
        return Ec2(self.cloud.settings(**settings), self.clock, price_book())

    def stranger(self) -> Backend:
        self.cloud.then("DescribeImages", "AuthFailure")  # the first call of a purchase
        return self.backend()

    def then(self, call: str, fault: Fault) -> None:
        self.cloud.then(self.ACTIONS[call], Cut(fault.value))

    def refusing(self, reason: RefusedFor) -> AbstractContextManager[None]:
        self.cloud.then("RunInstances", self.CODES[reason])
        return nullcontext()

    def wait(self) -> None:
        self.cloud.catch_up()
        self.cloud.lag()


SSHD: Final = """\
Port 22
HostKey /tmp/host_key
AuthorizedKeysFile /tmp/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile /run/sshd.pid
ForceCommand sh /tmp/faults
"""
FAULTS: Final = """\
export PATH="/tmp/bin:$PATH"
fault=$(cat /tmp/fault 2>/dev/null)
rm -f /tmp/fault
case $fault in
undone) kill -9 $PPID ;;
lost) sh -c "$SSH_ORIGINAL_COMMAND" >/dev/null; kill -9 $PPID ;;
*) exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
"""
"""Runs each command, but for the next one after a fault was ordered; then the connection dies, before it or after."""
FIREWALL: Final = """\
table inet box {
    chain input {
        type filter hook input priority 0; policy drop;
        iif lo accept
        ct state established,related accept
        tcp dport 22 accept
    }
}
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A machine in namespaces with a real sshd, whose firewall lets in nothing else."""

    machine: SecondHost
    address: str
    host_key: str
    key: str
    stranger_key: str


class SshWorld(World):
    """OpenSSH's ssh against OpenSSH's sshd."""

    kind, level = "ssh", Level.LIVE
    reasons = (RefusedFor.CAPACITY, RefusedFor.AUTH)

    def __init__(self, box: Box) -> None:
        self.clock, self.box = SystemClock(), box
        self.secrets = (JOIN_TOKEN, box.key.splitlines()[2])

    def settings(self, **more: str) -> dict[str, str]:
        known = {"address": self.box.address, "host_key": self.box.host_key, "price_per_hour": "0.85", "cpus": "4"}
        return known | more

    def backend(self, *, call_s: float = 40.0, **settings: str) -> SshBox:
        read = read_settings(self.settings(**settings), {"private_key": self.box.key})
        return SshBox(read, self.clock, call_s=call_s)

    def stranger(self) -> Backend:
        return SshBox(read_settings(self.settings(), {"private_key": self.box.stranger_key}), self.clock)

    def then(self, _call: str, fault: Fault) -> None:
        self.run(f"echo {fault} >/tmp/fault")

    @contextmanager
    def refusing(self, reason: RefusedFor) -> Iterator[None]:
        if reason is RefusedFor.AUTH:
            self.run("mv /tmp/authorized /tmp/none")
            yield
            self.run("mv /tmp/none /tmp/authorized")
            return
        self.run(f"mkdir {FOLDER}; printf 'market=theirs\\npurchase=theirs\\n' >{FOLDER}/tags")
        yield
        self.run(f"rm -r {FOLDER}")

    def wait(self) -> None:
        """Nothing lags."""

    def meet(self, count: int) -> None:
        """So many buyers find the machine free before one of them takes it."""
        text = f"""#!/bin/sh
touch "/tmp/met.$$"
until [ "$(ls /tmp/met.* | wc -l)" -ge {count} ]; do sleep 0.05; done
exec /usr/bin/mktemp "$@"
"""
        self.run(f"mkdir -p /tmp/bin; printf '%s' {shlex.quote(text)} >/tmp/bin/mktemp; chmod +x /tmp/bin/mktemp")

    def run(self, command: str) -> str:
        done = self.box.machine.run(command)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def clear(self) -> None:
        """Nobody has the machine, and it remembers nothing."""
        runs = "/run/windrow-purchase.pid"
        self.box.machine.run(f"kill -s KILL -- -$(cat {runs}); rm -rf {runs} {FOLDER}* /var/lib/windrow-agent")
        self.box.machine.run("rm -rf /tmp/fault /tmp/bin /tmp/met.*")


class ModalWorld(World):
    """Modal's own client against a server from its wheel's stubs. Its lists do not lag."""

    kind, level, secrets = "modal", Level.PROTOCOL, (TOKEN_ID, TOKEN_SECRET, JOIN_TOKEN)
    reasons = (RefusedFor.CAPACITY, RefusedFor.QUOTA, RefusedFor.AUTH, RefusedFor.LIMIT)
    user_data = Start(f"http://127.0.0.1:9/{JOIN_TOKEN}").text
    CALLS: Final = {"provision": "SandboxCreate", "terminate": "SandboxTerminate", "describe": "SandboxList"}

    def __init__(self, cloud: ModalCloud) -> None:
        self.clock, self.cloud = SystemClock(), cloud
        self._made = list[Modal]()

    def backend(self, token_secret: str = TOKEN_SECRET) -> Modal:
        settings = ModalSettings(token_id=TOKEN_ID, token_secret=token_secret)
        self._made.append(Modal(settings, self.clock, price_book()))
        return self._made[-1]

    async def close(self) -> None:
        for one in self._made:
            await one.close()

    def stranger(self) -> Backend:
        return self.backend("as-of-somebody-else")

    def then(self, call: str, fault: Fault) -> None:
        self.cloud.then(self.CALLS[call], fault)

    def refusing(self, reason: RefusedFor) -> AbstractContextManager[None]:
        self.cloud.then("SandboxCreate", Fault(reason.value))
        return nullcontext()

    def wait(self) -> None:
        """Nothing lags."""


@pytest.fixture(scope="package")
def moto_amazon() -> Iterator[MotoCloud]:
    with moto_cloud() as cloud:
        yield cloud


@pytest.fixture(scope="package")
def ssh_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    need_namespaces()
    services.need("openssh")
    with bridge() as (name, address), second_host(name, address) as machine:
        yield box_of(machine, tmp_path_factory.mktemp("keys"))


def box_of(machine: SecondHost, folder: Path) -> Box:
    """Make a box of a machine: start its sshd, and let nothing else in."""
    made = {name: _keys(folder, name) for name in ("host", "own", "stranger")}
    public = {name: one.with_suffix(".pub").read_text() for name, one in made.items()}
    files = {"host_key": made["host"].read_text(), "authorized": public["own"], "sshd": SSHD, "faults": FAULTS}
    for where, text in {**files, "firewall": FIREWALL}.items():
        put = machine.run(f"umask 077; printf '%s' {shlex.quote(text)} >/tmp/{where}")
        assert put.returncode == 0, put.stderr
    begun = machine.run("mkdir -p /run/sshd; nft -f /tmp/firewall; /usr/sbin/sshd -f /tmp/sshd")
    assert begun.returncode == 0, begun.stderr
    there = machine.run("hostname -I").stdout.split()[0]
    return Box(machine, there, public["host"], made["own"].read_text(), made["stranger"].read_text())


def _keys(folder: Path, name: str) -> Path:
    made = folder / name
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(made)], check=True, timeout=60)
    return made


@pytest.fixture
def memory_world() -> MemoryWorld:
    return MemoryWorld()


@pytest.fixture
def ec2_world(moto_amazon: MotoCloud) -> Iterator[Ec2World]:
    yield Ec2World(moto_amazon)
    moto_amazon.reset()


@pytest.fixture
def ssh_world(ssh_machine: Box) -> Iterator[SshWorld]:
    world = SshWorld(ssh_machine)
    yield world
    world.clear()


@pytest.fixture(scope="package")
def modal_server() -> Iterator[ModalCloud]:
    with modal_cloud(is_apart=os.geteuid() == 0) as cloud:
        yield cloud


@pytest.fixture
def modal_world(modal_server: ModalCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModalWorld]:
    monkeypatch.setenv("MODAL_SERVER_URL", modal_server.url)
    monkeypatch.setenv("MODAL_SANDBOX_V2", "0")
    world = ModalWorld(modal_server)
    yield world
    asyncio.run(world.close())
    modal_server.clear()


WORLDS: Final[dict[str, type[Any]]] = {"memory": MemoryWorld, "ec2": Ec2World, "ssh": SshWorld, "modal": ModalWorld}
"""By the beginning of their fixtures' names."""


def rank(level: Level) -> int:
    """0 for the furthest."""
    return list(Level).index(level)
