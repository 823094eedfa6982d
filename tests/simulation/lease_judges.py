"""Judges of holding and letting go: grants, freed slots, time that is over, Masters that are old."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.simulation.books import Books
from tests.simulation.loop import START_WALL_NS
from tests.simulation.pair import PairedMaster
from tests.simulation.witness import Life
from windrow_master.app.clock import NEARER_ONE_IN
from windrow_proto.units import SECOND
from windrow_proto.wire_host import decode_inventory

if TYPE_CHECKING:
    from tests.simulation.world import World

LAPSES = frozenset({"lease_lapsed", "unpaid"})
LATE_NS = 20 * SECOND
"""Ten seconds of grace, a look each second, and the journal's writes on a slow disk."""


def freed_is_empty(world: "World", books: Books) -> Iterator[str]:
    """A slot is free only when what ran on it under that token has ended on its host."""
    ends: dict[tuple[str, int], list[Life]] = defaultdict(list)
    now_ns = world.clock.monotonic_ns()
    # A Master whose machine's clock has jumped writes down times of a clock that goes a little slower or faster.
    bent_ns = now_ns // NEARER_ONE_IN if world.happened.get("master's clock jumps") else 0
    for lives in world.witness.lives.values():
        for life in lives:
            for grant in life.slots:
                ends[grant.slot_id, grant.token].append(life)
    for row in books.audit():
        if row["action"] not in ("slot.scrubbed", "slot.reverified"):
            continue
        freed_ns = row["at_ns"] - START_WALL_NS
        for life in ends[row["subject"], int(row["fields"]["token"])]:
            if life.end_ns(now_ns) > freed_ns + bent_ns:
                yield f"I2 {row['subject']} was free {(life.end_ns(now_ns) - freed_ns) / SECOND:.1f} s too early"


def grants_agree(world: "World", books: Books) -> Iterator[str]:
    """The rows of holdings say what the slots say: one open row for each that is held, none twice."""
    held = {r["slot_id"]: (r["token"], r["holder"]) for r in books.rows("SELECT * FROM slots WHERE holder IS NOT NULL")}
    opened = books.rows("SELECT * FROM grants WHERE ended_at_ns IS NULL")
    found = {row["slot_id"]: (row["token"], row["holder"]) for row in opened}
    if found != held or len(opened) != len(found):
        yield f"I2 open grants and held slots differ: {sorted(found.items() ^ held.items())[:2]}"


def hosts_give_no_more_than_they_have(world: "World", books: Books) -> Iterator[str]:
    """The work on a host never has more processors or memory than the host, and its slots say what its work has."""
    size = "SUM(cpus) AS cpus, SUM(memory_bytes) AS memory"
    by_slots = books.rows(f"SELECT host_id, {size} FROM slots WHERE holder IS NOT NULL GROUP BY host_id")
    by_work = books.rows(f"SELECT host_id, {size} FROM workloads WHERE is_released = 0 GROUP BY host_id")
    inventories = {row["host_id"]: row["inventory"] for row in books.rows("SELECT host_id, inventory FROM hosts")}
    slots = {row["host_id"]: (row["cpus"], row["memory"]) for row in by_slots}
    for row in by_work:
        host_id, taken = row["host_id"], (row["cpus"], row["memory"])
        has = decode_inventory(bytes(inventories[host_id]))
        if taken[0] > has.cpu_count or taken[1] > has.memory_bytes:
            yield f"I2 {host_id[-6:]} has {has.cpu_count} processors and gave {taken[0]} and {taken[1]} B of memory"
        if taken != slots.get(host_id, (0, 0)):
            yield f"I2 {host_id[-6:]}: its work has {taken}, and its slots say {slots.get(host_id)}"


def ends_in_time(world: "World", books: Books) -> Iterator[str]:
    """A host that has an agent ends the work when the last time it was told is over, and not before the first."""
    witness, now_ns = world.witness, world.clock.monotonic_ns()
    for host_id, lives in witness.lives.items():
        for life in lives:
            told = witness.terms.get(life.workload_id, [])
            over_ns = max((term.until_ns for term in told), default=now_ns)
            for began_ns, ended_ns in witness.up_times[host_id]:
                until_ns = min(now_ns if ended_ns is None else ended_ns, life.end_ns(now_ns))
                late_ns = until_ns - max(began_ns, over_ns)
                if late_ns > LATE_NS:
                    yield f"I6 {life.workload_id} ran {late_ns / SECOND:.0f} s past its time on {host_id[-6:]}"
            why = {receipt.end_reason for receipt in witness.receipts.get(life.workload_id, ()) if receipt.final}
            first_ns = min((term.until_ns for term in told), default=0)
            is_early = life.end_ns(now_ns) < first_ns - SECOND
            if why & LAPSES and is_early and not witness.cuts[host_id]:
                early_s = (first_ns - life.end_ns(now_ns)) / SECOND
                yield f"I6 {life.workload_id} was ended {early_s:.0f} s before its time, as {sorted(why)}"


def epochs_grow_on_hosts(world: "World", books: Books) -> Iterator[str]:
    """No host serves an older Master once it has served a newer one, through its own restarts and power cuts too."""
    fell = world.witness.epochs_fell
    if fell:
        yield f"I7 a host went back to an older Master: {len(fell)} times, first {fell[:2]}"


def overtaken_writes_no_more(world: "World", books: Books) -> Iterator[str]:
    """Once a Master's term has begun, no earlier one commits anything."""
    if isinstance(world.master, PairedMaster):
        lives = world.master.server.lives
        for number, life in enumerate(lives):
            if life in lives[:number]:
                yield f"I7 {life} wrote after {lives[number - 1]} had begun its term"


LEASES = (
    freed_is_empty,
    grants_agree,
    hosts_give_no_more_than_they_have,
    ends_in_time,
    epochs_grow_on_hosts,
    overtaken_writes_no_more,
)
