"""Asks history for a window of each card of some work, and tells what was found in it. Pure.

work, its hosts' inventories ─▶ cards ─▶ one question to history ─▶ readings of each card ─▶ rules.py
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from windrow_master.clusters.model import Workload
from windrow_master.telemetry.model import SeriesKey, SeriesPoints, SeriesQuery
from windrow_master.watch.findings import rules
from windrow_master.watch.findings.model import CardFacts, Finding, Line, Readings
from windrow_proto.ids import HostId
from windrow_proto.metrics import BY_NAME
from windrow_proto.model import GpuFacts, Inventory
from windrow_proto.units import MILLISECOND, MINUTE

WINDOW_NS: Final = 30 * MINUTE
"""Of work that goes on: what it does now, and long enough to call it idle."""
CARDS_MAX: Final = 16
POINTS: Final = 300
STEPS_S: Final = (10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21_600, 86_400)
"""Hosts read what these rules need every ten seconds."""

Inventories = Callable[[HostId], Inventory | None]


@dataclass(frozen=True, slots=True)
class Card:
    """One card and the workload that has it."""

    facts: CardFacts
    workload_id: str


@dataclass(frozen=True, slots=True)
class Looked:
    """What was found in a window. read: cards of which enough was read; of: cards that were looked at."""

    from_ms: int
    to_ms: int
    step_ms: int
    findings: tuple[Finding, ...]
    read: int
    of: int

    @property
    def words(self) -> str:
        """The whole in a sentence."""
        if not self.of:
            return "This work has no GPU of its own; findings are about GPUs."
        if not self.read:
            return "Too little was read of its GPUs yet: findings need a minute of readings."
        if not self.findings:
            return f"No finding: nothing holds the {'GPU' if self.of == 1 else f'{self.read} GPUs'} back."
        return f"{len(self.findings)} of {self.of} GPU{'' if self.of == 1 else 's'} held back."


def cards_of(workloads: Iterable[Workload], inventories: Inventories, *, serves: bool) -> tuple[Card, ...]:
    """The cards of a cluster's work in the order of its members, at most 16; of a rank, of the latest that has it."""
    latest = {one.rank: one for one in sorted(workloads, key=lambda one: one.workload_id)}
    found: dict[tuple[HostId, str], Card] = {}
    for work in (latest[rank] for rank in sorted(latest)):
        inventory = inventories(work.host_id)
        known = {gpu.uuid: gpu for gpu in inventory.gpus} if inventory is not None else {}
        for slot in work.slots:
            if slot.gpu_uuid:
                # Beside a GPU one processor is no limit (clusters/request.py): the work may use all of the host's.
                cpus = inventory.cpu_count if work.cpus == 1 and inventory is not None else work.cpus
                facts = _facts(work, slot.gpu_uuid, known.get(slot.gpu_uuid), cpus, serves)
                found[work.host_id, slot.gpu_uuid] = Card(facts, work.workload_id)
    return tuple(found.values())[:CARDS_MAX]


def _facts(work: Workload, uuid: str, gpu: GpuFacts | None, cpus: int, serves: bool) -> CardFacts:
    def watts(milliwatts: int | None) -> float | None:
        return None if milliwatts is None else milliwatts / 1000

    return CardFacts(
        host_id=work.host_id,
        host_name=work.host_name,
        rank=work.rank,
        gpu=uuid,
        index=None if gpu is None else gpu.index,
        cpus=cpus,
        serves=serves,
        memory_bytes=None if gpu is None else gpu.memory_bytes,
        power_limit_watts=None if gpu is None else watts(gpu.power_limit_mw),
        power_limit_max_watts=None if gpu is None else watts(gpu.power_limit_max_mw),
        pcie_generation=None if gpu is None else gpu.pcie_generation_max,
        pcie_lanes=None if gpu is None else gpu.pcie_width_max,
    )


def query_of(cards: Sequence[Card], began_ns: int, ended_ns: int | None, now_ns: int) -> SeriesQuery:
    """The window: the last half hour of what goes on, the whole of what has ended. All in wall time."""
    to_ns = now_ns if ended_ns is None else min(ended_ns, now_ns)
    from_ns = max(began_ns, to_ns - WINDOW_NS) if ended_ns is None else began_ns
    wanted_s = max(0, to_ns - from_ns) // (POINTS * 1000 * MILLISECOND)
    step = next((step for step in STEPS_S if step >= wanted_s), STEPS_S[-1]) * 1000
    keys: dict[SeriesKey, None] = {}
    for card in cards:
        keys |= dict.fromkeys(_keys(card).values())
    return SeriesQuery(
        tuple(keys),
        from_ns // MILLISECOND // step * step,
        -(-max(to_ns, from_ns + 1) // MILLISECOND // step) * step,
        step,
    )


def _keys(card: Card) -> Mapping[str, SeriesKey]:
    host = card.facts.host_id
    devices = ((rules.OF_GPU, card.facts.gpu), (rules.OF_HOST, ""), (rules.OF_WORKLOAD, card.workload_id))
    return {name: SeriesKey(host, device, BY_NAME[name].number) for names, device in devices for name in names}


def looked(cards: Sequence[Card], query: SeriesQuery, found: Iterable[SeriesPoints]) -> Looked:
    """What the points of history say of these cards."""
    lines: dict[SeriesKey, Line] = {one.key: one.points for one in found}
    windows = [
        (card.facts, Readings(query.step_ms, {name: lines.get(key, ()) for name, key in _keys(card).items()}))
        for card in cards
    ]
    findings = [one for facts, readings in windows if (one := rules.finding(facts, readings)) is not None]
    read = sum(rules.is_read(readings) for _, readings in windows)
    return Looked(query.from_ms, query.to_ms, query.step_ms, tuple(findings), read, len(cards))
