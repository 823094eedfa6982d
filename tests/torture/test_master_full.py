"""The Master's disk is filled at one write after another while a market works: deletes are followed through, nothing is
falsely acknowledged, nothing is damaged, and all goes on by itself when there is space."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.simulation.__main__ import described
from tests.simulation.full_disk import SharedDisk
from tests.simulation.world import Plan, World, play
from windrow_master.store.disk_space import LOOK_EVERY_NS, DiskSpace
from windrow_proto.ballast import Ballast
from windrow_proto.units import MINUTE, SECOND

SEEDS = range(1, 25 if os.environ.get("TORTURE") else 3)
PLAN = Plan(
    0,
    hosts=4,
    renters=4,
    faulty_ns=3 * MINUTE,
    settle_ns=6 * MINUTE,
    fault_every_ns=6 * SECOND,
    faults=("fill disk of master",),
    fills_disk=True,
)
NOTICED_NS = LOOK_EVERY_NS + SECOND


@dataclass
class Watched:
    """When the disk was full, in the loop's time, and what the ballast gave."""

    periods: list[tuple[int, int]] = field(default_factory=list)
    pieces: int = 0

    def within(self, at_ns: int) -> bool:
        """True if this moment lies in a time that the Master must have noticed."""
        return any(began + NOTICED_NS < at_ns < ended for began, ended in self.periods)


@contextmanager
def watched(patch: pytest.MonkeyPatch) -> Iterator[Watched]:
    """Note when the disk is filled and emptied, and each piece of ballast."""
    seen, clocks = Watched(), []
    fill, empty, spend, built = SharedDisk.fill, SharedDisk.empty, DiskSpace.spend, SharedDisk.room

    def room(disk, clock):
        clocks.append(clock)
        return built(disk, clock)

    def filled(disk):
        seen.periods.append((clocks[-1].monotonic_ns(), 1 << 62))
        fill(disk)

    def emptied(disk):
        if seen.periods and disk.capacity_bytes is not None:
            seen.periods[-1] = (seen.periods[-1][0], clocks[-1].monotonic_ns())
        empty(disk)

    def spent(kept):
        gave = spend(kept)
        seen.pieces += gave
        return gave

    for owner, name, done in (
        (SharedDisk, "room", room),
        (SharedDisk, "fill", filled),
        (SharedDisk, "empty", emptied),
        (DiskSpace, "spend", spent),
    ):
        patch.setattr(owner, name, done)
    yield seen


def deletes_within(world: World, seen: Watched) -> int:
    return sum(seen.within(at) for renter in world.renters for at in renter.deleted.values())


@pytest.mark.timeout(900)
def test_deletes_are_done_and_nothing_is_lost_wherever_the_disk_fills(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fills = refused = deletes = pieces = 0
    for seed in SEEDS:
        with watched(monkeypatch) as seen:
            world = play(replace(PLAN, seed=seed), tmp_path / str(seed))
        monkeypatch.undo()

        assert not world.verdicts, described(world)
        created = [at for renter in world.renters for at in renter.created.values()]
        assert not [at for at in created if seen.within(at)], "new work on a full disk"
        assert isinstance(world.master.disk, SharedDisk)
        fills += len(seen.periods)
        refused += world.master.disk.refused
        deletes += deletes_within(world, seen)
        pieces += seen.pieces
    print(f"{fills} times filled, {refused} writes refused, {deletes} deletes meanwhile, {pieces} pieces of ballast")
    assert fills >= 3 * len(SEEDS) and refused and deletes >= 2 and pieces


@pytest.mark.long
@pytest.mark.timeout(900)
def test_without_ballast_deletes_fail_and_still_nothing_is_falsely_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with watched(monkeypatch) as seen:
        monkeypatch.setattr(Ballast, "spend", lambda self: False)
        world = play(replace(PLAN, seed=SEEDS[0]), tmp_path)

    assert deletes_within(world, seen) == 0, "the other test would see a Master without ballast"
    assert not [said for said in world.verdicts if said.startswith("I1")], described(world)
