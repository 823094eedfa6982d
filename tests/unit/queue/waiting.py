"""A queue in which something waits: a feed that says what a test wants, and a source that finds no place."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from windrow_master.queue.backfill import Host
from windrow_master.queue.model import FOREVER, MILLI, Amounts, Entry, Need
from windrow_master.queue.ports import Charge, HostNews, News, Refused, Run, Started
from windrow_master.queue.service import QueueService
from windrow_master.queue.shares import ROOT, Node


class ToldFeed:
    """Rows as a test has them: hosts of eight cards, and what runs there."""

    def __init__(self, hosts: Sequence[str] = (), runs: Mapping[str, Sequence[Run]] | None = None) -> None:
        self.hosts, self.runs = hosts, runs or {}
        self.is_new = True

    async def news(self) -> News | None:
        if not self.is_new:
            return None
        self.is_new = False
        hosts = [
            HostNews(Host(host_id=one, pool="a100", cards=8, cpus=64 * MILLI), tuple(self.runs.get(one, ())))
            for one in self.hosts
        ]
        leaves = [run.entry.leaf for runs in self.runs.values() for run in runs]
        return News(hosts, (), Amounts(gpus=8 * MILLI * max(1, len(hosts))), await self.nodes(leaves))

    def due_ns(self) -> int:
        return FOREVER

    def need(self, entry: Entry) -> Need:
        return entry.need

    def touched(self) -> frozenset[str]:
        return frozenset()

    def read_again(self, host_ids: Iterable[str]) -> None:
        self.is_new = True

    async def past(self, since_ns: int) -> Sequence[Charge]:
        return ()

    async def nodes(self, leaves: Sequence[str]) -> Sequence[Node]:
        return [Node(node_id=one, parent=ROOT) for one in leaves]

    def tier_costs(self) -> Mapping[str, int]:
        return {}


class FullSource:
    """Finds no place for anything."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    async def place(self, entry: Entry, closed: frozenset[str]) -> Started | Refused:
        return Refused("No host has a free GPU.")

    async def place_copies(self, entries: Sequence[Entry], closed: frozenset[str]) -> Sequence[Started]:
        return ()

    async def tell(self, entry_ids: Sequence[str], said: str) -> None:
        self.told |= dict.fromkeys(entry_ids, said)


def asks(entry_id: str, leaf: str, at_ns: int, cards: int = 1, **more: Any) -> Entry:
    """An entry that asks for whole cards."""
    return Entry(
        **{
            "entry_id": entry_id,
            "leaf": leaf,
            "cost": Amounts(gpus=cards * MILLI),
            "need": Need(cards=cards, cpus=MILLI),
            "submitted_ns": at_ns,
            "name": "work",
            **more,
        }
    )


async def waits(queue: QueueService, *entries: Entry) -> None:
    """Put these, and have them looked at."""
    for one in entries:
        queue.put(one, FullSource())
    await queue.tick()
