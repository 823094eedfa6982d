"""Finds the hosts that are due to be measured, and issues the commands: bandwidth again and again, benchmarks once."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.fleet import bandwidth
from windrow_master.fleet.bandwidth_repository import BandwidthRepository
from windrow_master.fleet.commands import CommandQueue
from windrow_master.fleet.hosts import HostRegistry
from windrow_master.fleet.intake import next_measurement_ns
from windrow_master.fleet.model import AdminState, Host, MeasuredRound
from windrow_master.fleet.repository import CommandRepository
from windrow_master.fleet.view import Entry
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import TooMany
from windrow_proto.ids import CommandId, HostId
from windrow_proto.model import BandwidthSpec, Command, CommandKind
from windrow_proto.units import DAY, GIB, HOUR, MIB, MINUTE, SECOND, time_text
from windrow_proto.wire_command import decode_command

MEASURE_DURATION_NS: Final = 4 * SECOND
"""Each way, of the 10 s that an Access allows. Shapers let some tenths of a second of their rate through at once: of
two seconds that was more than a tenth."""
MEASURE_CAP_BYTES: Final = 256 * MIB
MEASURE_SIMULATED_CAP_BYTES: Final = MIB
"""Of a simulated host: its line is the loopback, and two hundred of them would keep two processors busy for minutes."""
MEASURE_LIFE_NS: Final = MINUTE
"""Not-after of a measurement; one that is open for longer is no reason to hold back others."""
MEASURES_AT_ONCE: Final = 2
"""Measurements under way at one time: more of them would measure each other."""
MEASURE_DAY_BYTES: Final = 6 * GIB
"""That one host may be asked to move in any 24 hours, both ways together: the four or five rounds that are due by
themselves, by three relays, and some that people ask for."""
BENCHMARK_AGAIN_NS: Final = 6 * HOUR


class BandwidthSchedule:
    """Asks hosts to measure themselves. Methods that take a `uow` run inside the caller's unit of work.

    cap_bytes: that a measurement of a real host may move each way.
    """

    def __init__(self, hosts: HostRegistry, commands: CommandQueue, cap_bytes: int) -> None:
        self._hosts, self._commands = hosts, commands
        self._benchmarked: dict[HostId, int] = {}
        self.cap_bytes = cap_bytes

    def due(
        self, entries: Iterable[Entry], is_connected: Callable[[HostId], bool], now_ns: int
    ) -> tuple[list[Host], list[Host]]:
        """Return the hosts whose bandwidth is due at this wall time, real ones first, and those without benchmarks;
        each of the latter is named once in six hours."""
        ready = [e.host for e in entries if e.host.inventory is not None and is_connected(e.host.host_id)]
        due = [host for host in ready if host.admin_state is AdminState.ACTIVE and (host.measure_due_ns or 0) <= now_ns]
        due.sort(key=lambda host: (host.simulated, host.measure_due_ns or 0, host.host_id))
        bare = [host for host in ready if host.inventory is not None and not host.inventory.benchmarks]
        again_ns = now_ns - BENCHMARK_AGAIN_NS
        bare = [host for host in bare if self._benchmarked.get(host.host_id, again_ns) <= again_ns]
        self._benchmarked |= {host.host_id: now_ns for host in bare}
        return due, bare

    def rounds(self, uow: UnitOfWork, host_id: HostId, limit: int) -> Sequence[MeasuredRound]:
        """The bandwidth measurements of a host, by round and region, the newest first."""
        return uow[BandwidthRepository].of_host(host_id, limit)

    def ask_all(self, uow: UnitOfWork, due: Sequence[Host], bare: Sequence[Host], relays: Collection[str]) -> None:
        """Measure the first of those that are due, as many as may be measured beside each other, and benchmark all.
        relays: that serve now."""
        recent_ns = uow.now_wall_ns - MEASURE_LIFE_NS
        measures = [row for row in uow[CommandRepository].open_all() if row.kind is CommandKind.MEASURE_BANDWIDTH]
        under_way = {row.host_id for row in measures if row.created_at_ns > recent_ns}
        free = max(0, MEASURES_AT_ONCE - len(under_way))
        for host in [host for host in due if host.host_id not in under_way][:free]:
            # Should it fail, it is tried again within the hour; a success sets the real date.
            retry_ns = uow.now_wall_ns + (next_measurement_ns(uow) - uow.now_wall_ns) // 6
            try:
                self.ask(uow, host.host_id, "master", relays)
            except TooMany as error:
                retry_ns = uow.now_wall_ns + error.retry_after_ns
            current = self._hosts.load(uow, host.host_id)
            self._hosts.save(uow, replace(current, measure_due_ns=retry_ns))
        for host in bare:
            latest = [row for row in uow[CommandRepository].list(host.host_id) if row.kind is CommandKind.BENCHMARK]
            if not latest or uow.now_wall_ns - latest[0].created_at_ns > BENCHMARK_AGAIN_NS:
                self._commands.issue(uow, host.host_id, Command(CommandId(""), CommandKind.BENCHMARK))

    def ask(self, uow: UnitOfWork, host_id: HostId, actor: str, relays: Collection[str]) -> CommandId:
        """Measure one host's bandwidth now, by two or three of these relays where so many serve. The bytes are shared
        among them. Raises TooMany beyond what one host may be asked to move in a day."""
        is_simulated = self._hosts.load(uow, host_id).simulated
        others = () if is_simulated else bandwidth.others(relays, uow.random_bytes(bandwidth.OTHERS_MAX))
        cap_bytes = MEASURE_SIMULATED_CAP_BYTES if is_simulated else self.cap_bytes // max(1, len(others))
        spec = BandwidthSpec(MEASURE_DURATION_NS, cap_bytes, uow.random_bytes(16).hex(), others)
        self._check_budget(uow, host_id, spec)
        command = Command(CommandId(""), CommandKind.MEASURE_BANDWIDTH, bandwidth=spec)
        not_after_ns = uow.now_wall_ns + MEASURE_LIFE_NS
        return self._commands.issue(uow, host_id, command, not_after_ns, actor=actor)

    def _check_budget(self, uow: UnitOfWork, host_id: HostId, spec: BandwidthSpec) -> None:
        """Raise TooMany, with when that is possible again, where this would go beyond the budget of a day. A single
        measurement never does, however large an operator made it."""
        asked = uow[CommandRepository].since(host_id, CommandKind.MEASURE_BANDWIDTH, uow.now_wall_ns - DAY)
        moved = [(row.created_at_ns, bandwidth.bytes_max(decode_command(row.body).bandwidth)) for row in asked]
        free_ns = bandwidth.free_again_ns(moved, bandwidth.bytes_max(spec), MEASURE_DAY_BYTES)
        if free_ns is not None:
            raise TooMany(
                f"Measurements of this host may move {MEASURE_DAY_BYTES // GIB} GiB in 24 hours, which they have;"
                f" it can be measured again from {time_text(free_ns + DAY)} on.",
                subject=host_id,
                retry_after_ns=free_ns + DAY - uow.now_wall_ns,
            )
