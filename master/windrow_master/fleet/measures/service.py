"""Which hosts are due to be measured, and the commands that do it: bandwidth again and again, benchmarks once."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.fleet import measured
from windrow_master.fleet.commands.service import CommandDesk
from windrow_master.fleet.evidence.service import next_measurement_ns
from windrow_master.fleet.hosts.service import HostDesk
from windrow_master.fleet.model import AdminState, Host
from windrow_master.fleet.view import Entry
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import CommandId, HostId
from windrow_proto.model import BandwidthSpec, Command, CommandKind
from windrow_proto.units import HOUR, MIB, MINUTE, SECOND

MEASURE_DURATION_NS: Final = 2 * SECOND
MEASURE_CAP_BYTES: Final = 256 * MIB
MEASURE_SIMULATED_CAP_BYTES: Final = MIB
"""Of a simulated host: its line is the loopback, and two hundred of them would keep two processors busy for minutes."""
MEASURE_LIFE_NS: Final = MINUTE
"""Not-after of a measurement; one that is open for longer is no reason to hold back others."""
MEASURES_AT_ONCE: Final = 2
"""Measurements under way at one time: more of them would measure each other."""
BENCHMARK_AGAIN_NS: Final = 6 * HOUR


class MeasureDesk:
    """Asks hosts to measure themselves. Methods that take a `uow` run inside the caller's unit of work.

    cap_bytes: that a measurement of a real host may move each way.
    """

    def __init__(self, hosts: HostDesk, commands: CommandDesk) -> None:
        self._hosts, self._commands = hosts, commands
        self._benchmarked: dict[HostId, int] = {}
        self.cap_bytes = MEASURE_CAP_BYTES

    def due(
        self, entries: Iterable[Entry], is_connected: Callable[[HostId], bool], now_ns: int
    ) -> tuple[list[Host], list[Host]]:
        """Whose bandwidth is due at this wall time, real hosts first, and who has no benchmarks; each of the latter is
        named once in six hours."""
        ready = [e.host for e in entries if e.host.inventory is not None and is_connected(e.host.host_id)]
        due = [host for host in ready if host.admin_state is AdminState.ACTIVE and (host.measure_due_ns or 0) <= now_ns]
        due.sort(key=lambda host: (host.simulated, host.measure_due_ns or 0, host.host_id))
        bare = [host for host in ready if host.inventory is not None and not host.inventory.benchmarks]
        again_ns = now_ns - BENCHMARK_AGAIN_NS
        bare = [host for host in bare if self._benchmarked.get(host.host_id, again_ns) <= again_ns]
        self._benchmarked |= {host.host_id: now_ns for host in bare}
        return due, bare

    def ask_all(self, uow: UnitOfWork, due: Sequence[Host], bare: Sequence[Host], relays: Collection[str]) -> None:
        """Measure the first of those that are due, as many as may be measured beside each other, and benchmark all.
        relays: that serve now."""
        recent_ns = uow.now_wall_ns - MEASURE_LIFE_NS
        measures = [row for row in uow.commands.open_all() if row.kind is CommandKind.MEASURE_BANDWIDTH]
        under_way = {row.host_id for row in measures if row.created_at_ns > recent_ns}
        free = max(0, MEASURES_AT_ONCE - len(under_way))
        for host in [host for host in due if host.host_id not in under_way][:free]:
            self.ask(uow, host.host_id, "master", relays)
            current = self._hosts.load(uow, host.host_id)
            # Should it fail, it is tried again within the hour; a success sets the real date.
            retry_ns = uow.now_wall_ns + (next_measurement_ns(uow) - uow.now_wall_ns) // 6
            self._hosts.save(uow, replace(current, measure_due_ns=retry_ns))
        for host in bare:
            latest = [row for row in uow.commands.list(host.host_id) if row.kind is CommandKind.BENCHMARK]
            if not latest or uow.now_wall_ns - latest[0].created_at_ns > BENCHMARK_AGAIN_NS:
                self._commands.issue(uow, host.host_id, Command(CommandId(""), CommandKind.BENCHMARK))

    def ask(self, uow: UnitOfWork, host_id: HostId, actor: str, relays: Collection[str]) -> CommandId:
        """Measure one host's bandwidth now, by two or three of these relays where so many serve. The bytes are shared
        among them."""
        is_simulated = self._hosts.load(uow, host_id).simulated
        others = () if is_simulated else measured.others(relays, uow.random_bytes(measured.OTHERS_MAX))
        cap_bytes = MEASURE_SIMULATED_CAP_BYTES if is_simulated else self.cap_bytes // max(1, len(others))
        spec = BandwidthSpec(MEASURE_DURATION_NS, cap_bytes, uow.random_bytes(16).hex(), others)
        command = Command(CommandId(""), CommandKind.MEASURE_BANDWIDTH, bandwidth=spec)
        return self._commands.issue(uow, host_id, command, uow.now_wall_ns + MEASURE_LIFE_NS, actor=actor)
