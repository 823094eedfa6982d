"""A small fleet on a real store, for the tests of the fleet's shell."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.master_support import ManualClock, SeededRng, opened_store
from tests.support.personas import card, host, uuid
from tests.support.wired import AccessKeys, fleet_on, forget_messages
from windrow_master.fleet.intake import EvidenceItem
from windrow_master.fleet.presence import Route
from windrow_master.fleet.repository import HostRepository, SlotRepository
from windrow_master.store.executors import Executor
from windrow_master.store.store import Store
from windrow_proto.ids import AccountId, BootId, HostId
from windrow_proto.messages import Heartbeat, Record
from windrow_proto.model import Kind
from windrow_proto.wire_host import encode_inventory

HOST = HostId("host_1")
OTHER = HostId("host_2")
OWNER = AccountId("account_1")
BOOT = BootId(b"b" * 16)
GPU_1, GPU_2 = uuid(1), uuid(2)


def h100(uuid, index):
    """An honest card with this UUID."""
    return card(index, uuid=uuid, serial=f"1650{int(uuid[4:12], 16):09d}")


class World:
    """A store, a clock moved by hand and the fleet on both."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store, self.clock = store, clock
        forget_messages(store)
        self.keys = AccessKeys()
        self.fleet = fleet_on(store, clock, SeededRng(), self.keys)
        self._sequence = 0

    def write(self, change):
        return self.store.write_now(change, name="test")

    def read(self, look):
        return self.store.read_now(look)

    def join(self, host_id=HOST, simulated=False):
        self.write(lambda uow: self.fleet.enrol(uow, host_id, str(host_id), OWNER, simulated, "account/account_1"))

    def record(self, kind, body, sequence=None, host_id=HOST, boot=BOOT):
        if sequence is None:
            self._sequence += 1
            sequence = self._sequence
        return EvidenceItem(host_id, Record(boot, sequence, kind, body), b"sealed " + body)

    def take(self, *items):
        self.write(lambda uow: self.fleet.evidence.take(uow, items))

    def equip(self, *uuids, host_id=HOST, conditions=()):
        """Let a host send an inventory with these GPUs."""
        self.claim(*(h100(uuid, n) for n, uuid in enumerate(uuids)), host_id=host_id, conditions=conditions)

    def claim(self, *gpus, host_id=HOST, conditions=()):
        """Let a host send an inventory with these facts of its GPUs."""
        inventory = host(*gpus, hostname=host_id, conditions=conditions)
        self.take(self.record(Kind.INVENTORY, encode_inventory(inventory), host_id=host_id))

    def connect(self, host_id=HOST, access="acc_1", boot=BOOT):
        self.fleet.presence.opened(host_id, Route(access, "local-a", "127.0.0.1:1", boot))

    def beat(self, host_id=HOST, conditions=(), digest=b"", inventory="hash"):
        self.fleet.presence.heard(host_id, Heartbeat(self.clock.wall_ns(), 1, inventory, digest, conditions))

    def host(self, host_id=HOST):
        return self.read(lambda uow: uow[HostRepository].get(host_id))

    def slots(self, host_id=HOST):
        return {slot.slot_id: slot for slot in self.read(lambda uow: uow[SlotRepository].of_host(host_id))}

    def events(self, subject=HOST):
        rows = self.read(lambda uow: uow.events.newest(subject))
        return [row.kind for row in rows]


@contextmanager
def world(directory: Path, database: str | None = None, executor: Executor | None = None) -> Iterator[World]:
    """A fresh world with one host, joined; on SQLite in the directory, or on the database of a URL."""
    clock = ManualClock()
    with opened_store(directory, clock, executor, database) as store:
        made = World(store, clock)
        made.join()
        yield made
