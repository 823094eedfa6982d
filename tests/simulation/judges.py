"""Independent judges of the promises I1 to I12: from the witness and the books, never from a service's own word.

Each returns sentences about what is wrong; no sentence means that the promise held in this history.
"""

import hashlib
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from tests.simulation.books import CHAIN_START, Books
from tests.simulation.cap_judges import (
    caps_hold_throughout,
    channels_tell_the_whole,
    deletes_arrive,
    older_certificates_are_not_served,
    secrets_stay_secret,
    urgent_goes_first,
)
from tests.simulation.identity_judges import (
    certificates_follow,
    copies_are_fenced,
    older_certificates_are_refused,
    quarantined_is_silent,
)
from tests.simulation.lease_judges import LEASES, epochs_grow_on_hosts
from tests.simulation.machines import forked
from tests.simulation.rules import CLUSTER_MOVES, FORGOTTEN, HOST_MOVES, SLOT_MOVES
from tests.simulation.witness import Life
from windrow_proto.intervals import Intervals
from windrow_proto.model import CommandPhase, Lane
from windrow_proto.units import SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

Judge = Callable[["World", Books], Iterable[str]]
HOUR_NS = 3600 * SECOND
CLOCKS_NS = 2 * SECOND
"""By which the Master's clock may run behind a host's before the host is charged for less."""
SPOOL_CAP_BYTES = (256 + 64 + 16 + 32) << 20
"""Both lanes, the ring, the journal with what is being rewritten."""
FINAL = frozenset({CommandPhase.SUCCEEDED, CommandPhase.FAILED, CommandPhase.CANCELLED, CommandPhase.REFUSED})
HOLDING = ("Creating", "Running", "Degraded")


def _few(kind: str, found: Iterable[object]) -> Iterator[str]:
    all_of_it = list(found)
    if all_of_it:
        yield f"{kind}: {len(all_of_it)}, first {all_of_it[:2]}"


# --- I1: acknowledged is stored once --------------------------------------------------------------------------------


def acked_is_durable(world: "World", books: Books) -> Iterator[str]:
    """Every record that an agent was told is safe is on the disk, or in a gap that is."""
    stored, marks, gaps = books.stored(), books.marks(), books.gaps()
    have: dict[tuple[str, bytes], list[tuple[int, int]]] = defaultdict(list)
    for host_id, boot, sequence in sorted(stored.times):
        have[host_id, boot].append((sequence, sequence))
    for origin, acked in world.witness.acked.items():
        host_id, lane, boot = origin
        kept = have[host_id, boot] if lane is Lane.TELEMETRY else marks.get((host_id, boot), [])
        told = [*gaps.get(origin, []), *world.witness.gaps[origin].ranges]
        lost = acked.without(Intervals.of([*kept, *told]))
        if lost.ranges:
            yield f"I1 {host_id} was acknowledged {lane.name} {lost.ranges[:3]}, which is not stored"


def stored_once(world: "World", books: Books) -> Iterator[str]:
    """Nothing twice, nothing changed, nothing that nobody sent."""
    stored, sent = books.stored(), world.witness.sent
    yield from _few("I1 stored more than once", (key for key, times in stored.times.items() if times > 1))
    keys = {(host, boot, number): (host, Lane.TELEMETRY, boot, number) for host, boot, number in stored.digests}
    yield from _few("I1 stored otherwise than sent", (k for k, o in keys.items() if stored.digests[k] != sent.get(o)))
    yield from _few("I1 two versions", world.witness.changed)


def receipts_kept(world: "World", books: Books) -> Iterator[str]:
    """Every receipt that was acknowledged is in the market's books with its running time, or refused in the audit."""
    rows = {(r["workload_id"], r["number"]): r["running_ns"] for r in books.rows("SELECT * FROM receipts")}
    refused = {(r["subject"], r["fields"]["number"]) for r in books.audit() if r["action"] == "receipt.refused"}
    for (host_id, boot, sequence), receipt in world.witness.receipt_of.items():
        if not world.witness.acked[host_id, Lane.EVIDENCE, boot].contains(sequence):
            continue
        key = (receipt.workload_id, receipt.number)
        if rows.get(key) != receipt.running_ns and (key[0], str(key[1])) not in refused:
            yield f"I1 receipt {key} of {receipt.running_ns} ns was acknowledged, the books say {rows.get(key)}"


def answered_is_kept(world: "World", books: Books) -> Iterator[str]:
    """Things that renters were answered for are there."""
    phases = {r["cluster_id"]: r["phase"] for r in books.rows("SELECT cluster_id, phase FROM clusters")}
    for renter in world.renters:
        yield from _few("I1 a created cluster is gone", (c for c in renter.created if c not in phases))
        late = (c for c in renter.deleted if phases.get(c) not in ("Deleting", "Deleted", "Finished", "Failed"))
        yield from _few("I3 a deleted cluster lives", late)
        runs = (c for c in renter.stopped if phases.get(c) in (*HOLDING, "Finished", "Failed"))
        yield from _few("I3 a stopped cluster runs", runs)
        yield from _few("I9 somebody else's cluster was touched", renter.trespasses)


def asked_once_is_made_once(world: "World", books: Books) -> Iterator[str]:
    """However often a renter had to ask, one request made one cluster."""
    query = "SELECT account_id, name, count(*) AS made FROM clusters GROUP BY account_id, name HAVING made > 1"
    twice = (f"{row['name']} of {row['account_id'][-6:]}: {row['made']}" for row in books.rows(query))
    yield from _few("I3 made more than once", twice)


def backlog_arrived(world: "World", books: Books) -> Iterator[str]:
    """In the end the Master has everything that was ever sent, but for the last half minute."""
    late = {
        f"{host_id[-6:]} {lane.name} {sequence}"
        for (host_id, lane, boot, sequence) in world.witness.sent
        if not world.witness.acked[host_id, lane, boot].contains(sequence)
        and world.witness.sent_ns[host_id, lane, boot, sequence] < world.clock.monotonic_ns() - 30 * SECOND
    }
    yield from _few("I12 sent and never acknowledged", sorted(late))


# --- I2, I3: one holder, one effect ---------------------------------------------------------------------------------


def one_holder_in_books(world: "World", books: Books) -> Iterator[str]:
    """A slot has one holder, its states follow the table, and its token only grows."""
    state: dict[str, tuple[str, int, str]] = {}
    for row in books.audit():
        subject, fields, event = row["subject"], row["fields"], row["action"].removeprefix("slot.")
        if not row["action"].startswith("slot.") or "token" not in fields:
            continue
        before, token, holder = state.get(subject, ("free", 0, ""))
        after, number = fields["to"], int(fields["token"])
        if fields["from"] != before:
            yield f"I4 {subject} went from {fields['from']} to {after}, but it was {before} (audit {row['number']})"
        if after not in SLOT_MOVES.get((before, event), ()):
            yield f"I4 {subject}: {event} does not lead from {before} to {after} (audit {row['number']})"
        if event == "reserve" and (holder or number <= token):
            yield f"I2 {subject} was granted with token {number} while {holder or 'nobody'} held it with {token}"
        if event != "reserve" and number != token:
            yield f"I2 {subject}: the token went from {token} to {number} without a grant"
        state[subject] = (after, number, "" if after == "free" else fields["holder"])
    held: dict[str, list[str]] = defaultdict(list)
    for row in books.rows("SELECT workload_id, slots FROM workloads WHERE is_released = 0"):
        for slot in json.loads(row["slots"]):
            held[slot["slot_id"]].append(row["workload_id"])
    yield from _few("I2 slots with two workloads", ((s, w) for s, w in held.items() if len(w) > 1))


def one_runs_on_each_slot(world: "World", books: Books) -> Iterator[str]:
    """On the hosts themselves: never two at once on a slot, and tokens grow from start to start."""
    now_ns = world.clock.monotonic_ns()
    for host_id, lives in world.witness.lives.items():
        slots: dict[str, list[tuple[int, Life]]] = defaultdict(list)
        for life in lives:
            for grant in life.slots:
                slots[grant.slot_id].append((grant.token, life))
        for slot_id, runs in slots.items():
            for (token, life), (newer, following) in itertools.pairwise(runs):
                if following.started_ns < life.end_ns(now_ns):
                    yield f"I2 {host_id[-6:]} ran {life.workload_id} and {following.workload_id} at once on {slot_id}"
                if newer < token or (newer == token and life.workload_id != following.workload_id):
                    yield f"I2 {slot_id} of {host_id[-6:]} ran token {newer} after token {token}"


def deleted_never_runs(world: "World", books: Books) -> Iterator[str]:
    """No start after the host has taken the delete, none of what it said had run before."""
    witness = world.witness
    for lives in witness.lives.values():
        seen: dict[str, Life] = {}
        for life in lives:
            told = witness.deletes_told.get(life.workload_id)
            if told is not None and life.started_ns > told:
                yield f"I3 {life.workload_id} ran again {(life.started_ns - told) / SECOND:.1f} s after its delete"
            ran = witness.ran_told.get(life.workload_id)
            first = seen.setdefault(life.workload_id, life)
            if first is not life and (ran is not None and ran < life.started_ns):
                yield f"I3 {life.workload_id} was started again after it was said to run"
            if first is not life and not first.was_cut:
                yield f"I3 {life.workload_id} was started twice without a power cut between"


def results_never_change(world: "World", books: Books) -> Iterator[str]:
    """A command has one result, on the host and in the books."""
    states = {row["command_id"]: row["state"] for row in books.rows("SELECT command_id, state FROM commands")}
    for command_id, words in world.witness.told.items():
        final = {phase for _, _, phase, _ in words if phase in FINAL}
        if len(final) > 1:
            yield f"I3 {command_id} had the results {sorted(p.name for p in final)}"
        said = states.get(command_id, "")
        if CommandPhase.SUCCEEDED in final and said in ("failed", "cancelled"):
            yield f"I3 {command_id} succeeded, the books say {said}"


# --- I4, I11: transitions and audit ---------------------------------------------------------------------------------


def legal_transitions(world: "World", books: Books) -> Iterator[str]:
    """Clusters and hosts move along their tables only, and every move starts where the last one ended; a link's, once a
    new term has begun, where that left it."""
    at: dict[str, str] = {}
    term: dict[str, int] = {}
    for row in books.audit():
        room, _, event = row["action"].partition(".")
        fields = row["fields"]
        if room not in ("cluster", "host") or "from" not in fields:
            continue
        axis = f"{row['subject']} {'admin' if fields['from'] in HOST_MOVES['admin'] else ''}"
        allowed = CLUSTER_MOVES.get(fields["from"], ()) if room == "cluster" else _host_moves(fields["from"])
        if fields["to"] not in allowed:
            yield f"I4 {row['subject']}: {event} from {fields['from']} to {fields['to']}"
        before = at.get(axis, fields["from"])
        is_new_term = row["epoch"] > term.get(axis, row["epoch"])
        if fields["from"] not in (FORGOTTEN.get(before, (before,)) if is_new_term else (before,)):
            yield f"I4 {row['subject']} left {fields['from']}, but it was {before}"
        at[axis], term[axis] = fields["to"], row["epoch"]
    for row in books.rows("SELECT cluster_id, phase FROM clusters"):
        if row["phase"] != at.get(f"{row['cluster_id']} ", "Creating"):
            yield f"I4 {row['cluster_id']} is {row['phase']} without an audit row that says so"
    newest = max(row["epoch"] for row in books.rows("SELECT epoch FROM terms"))
    for row in books.rows("SELECT host_id, link_state FROM hosts"):
        axis = f"{row['host_id']} "
        before = at.get(axis, "unseen")
        left = (before, *FORGOTTEN.get(before, ())) if newest > term.get(axis, newest) else (before,)
        if row["link_state"] not in left:
            yield f"I4 {row['host_id']} is {row['link_state']} without an audit row that says so"


def _host_moves(state: str) -> tuple[str, ...]:
    return (*HOST_MOVES["admin"].get(state, ()), *HOST_MOVES["link"].get(state, ()))


def audit_verifies(world: "World", books: Books) -> Iterator[str]:
    """The chain of the audit holds, link by link."""
    previous = CHAIN_START
    for row in books.audit():
        content = [row[name] for name in ("at_ns", "epoch", "actor", "action", "subject", "reason", "fields")]
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        previous = hashlib.sha256(previous + text.encode()).digest()
        if previous != bytes(row["chain"]) or not row["actor"]:
            yield f"I11 the audit breaks at entry {row['number']}"
            return


def terms_grow(world: "World", books: Books) -> Iterator[str]:
    """Each life of the Master has a term of its own, and what it wrote carries it."""
    epochs = [row["epoch"] for row in books.rows("SELECT epoch FROM terms ORDER BY started_at_ns, epoch")]
    if epochs != sorted(set(epochs)):
        yield f"I7 terms {epochs}"
    written = [row["epoch"] for row in books.audit()]
    if written != sorted(written):
        yield "I7 an older term wrote after a newer one"


# --- I5, I6: money --------------------------------------------------------------------------------------------------


def ledger_balances(world: "World", books: Books) -> Iterator[str]:
    """Balances are the fold of the transfers; nobody owes; a closed rental holds nothing back."""
    fold: dict[str, int] = defaultdict(int)
    charged: dict[str, int] = defaultdict(int)
    ids: set[str] = set()
    for row in books.rows("SELECT * FROM transfers"):
        fold[row["debit"]] -= row["amount"]
        fold[row["credit"]] += row["amount"]
        if row["kind"] in ("charge", "fee"):
            charged[row["rental_id"]] += row["amount"]
        if row["transfer_id"] in ids or row["amount"] <= 0:
            yield f"I5 transfer {row['transfer_id']} was posted twice or for nothing"
        ids.add(row["transfer_id"])
    kept = {row["account"]: row["balance"] for row in books.rows("SELECT * FROM balances")}
    accounts = sorted(fold.keys() | kept.keys())
    wrong = ((a, kept.get(a, 0), fold[a]) for a in accounts if kept.get(a, 0) != fold[a])
    yield from _few("I5 balances that are no folds", wrong)
    yield from _few("I5 below zero", (a for a in accounts if fold[a] < 0 and a != "mint:test"))
    for row in books.rows("SELECT * FROM rentals"):
        if row["charged"] != charged[row["rental_id"]]:
            yield f"I5 {row['rental_id']} says {row['charged']} charged, its transfers {charged[row['rental_id']]}"
        if row["state"] == "closed" and fold[f"hold:{row['rental_id']}"]:
            yield f"I5 {row['rental_id']} is closed and still holds {fold['hold:' + row['rental_id']]}"


def charged_is_signed(world: "World", books: Books) -> Iterator[str]:
    """Charged is at most what was signed, which is at most what really ran, and at most the lease."""
    now_ns = world.clock.monotonic_ns()
    ran: dict[str, int] = defaultdict(int)
    for lives in world.witness.lives.values():
        for life in lives:
            ran[life.workload_id] += life.end_ns(now_ns) - life.started_ns
    for workload_id, receipts in world.witness.receipts.items():
        longest = max(receipt.running_ns for receipt in receipts)
        if longest > ran[workload_id]:
            yield f"I6 {workload_id} ran {ran[workload_id]} ns, its agent signed {longest}"
        by_number: dict[int, int] = {}
        for receipt in receipts:
            if by_number.setdefault(receipt.number, receipt.running_ns) != receipt.running_ns:
                yield f"I6 receipt {receipt.number} of {workload_id} was signed with two running times"
        if [by_number[n] for n in sorted(by_number)] != sorted(by_number.values()):
            yield f"I6 the receipts of {workload_id} run backwards"
    for row in books.rows("SELECT * FROM rental_lines"):
        receipts = world.witness.receipts.get(row["workload_id"], [])
        signed = max((receipt.running_ns for receipt in receipts), default=0)
        lease = row["lease_until_ns"] - row["lease_from_ns"]
        most = row["price_per_hour"] * min(signed, lease, ran[row["workload_id"]]) // HOUR_NS
        if row["signed_ns"] > signed or row["charged"] > most:
            yield f"I6 {row['workload_id']} was charged {row['charged']}, at most {most} was signed and leased"


def billed_in_full(world: "World", books: Books) -> Iterator[str]:
    """Rentals that closed with their last receipt were charged to the last signed second, when the renter could pay."""
    for row in books.rows(
        "SELECT l.*, r.state FROM rental_lines l JOIN rentals r ON r.rental_id = l.rental_id WHERE r.state = 'closed'"
    ):
        lease = row["lease_until_ns"] - row["lease_from_ns"]
        start_ns = row["runs_from_ns"] or row["lease_from_ns"]
        passed_ns = row["seen_at_ns"] - start_ns - row["silent_ns"] + CLOCKS_NS
        wished_ns = passed_ns if row["cut_at_ns"] is None else row["cut_at_ns"] - start_ns
        due = row["price_per_hour"] * max(0, min(row["signed_ns"], lease, passed_ns, wished_ns)) // HOUR_NS
        if row["final_number"] and row["charged"] != due:
            yield f"I6 {row['workload_id']} closed with {row['charged']} charged of {due}"


def wishes_bound_bills(world: "World", books: Books) -> Iterator[str]:
    """No bill is longer than from the lease of its slots to ten seconds after its end was wished for."""
    for row in books.rows("SELECT * FROM rental_lines WHERE cut_at_ns IS NOT NULL"):
        most = row["price_per_hour"] * (row["cut_at_ns"] - row["lease_from_ns"]) // HOUR_NS
        if row["charged"] > most:
            yield f"I6 {row['workload_id']} was charged {row['charged']}, at most {most} lie before its end"


# --- I8, I10: settled, within caps ----------------------------------------------------------------------------------


def observed_is_desired(world: "World", books: Books) -> Iterator[str]:
    """Work that should run runs, and nothing of ours runs that should not."""
    query = "SELECT w.*, c.phase AS cluster_phase FROM workloads w JOIN clusters c ON c.cluster_id = w.cluster_id"
    rows = {row["workload_id"]: row for row in books.rows(query)}
    running = {host.host_id: _running(host.machine) for host in world.hosts}
    for workload_id, row in rows.items():
        is_wanted = row["cluster_phase"] in ("Running", "Degraded") and row["phase"] == "running"
        if is_wanted and workload_id not in running[row["host_id"]]:
            yield f"I8 {workload_id} should run on {row['host_id'][-6:]} and does not"
        if row["cluster_phase"] in ("Stopping", "Deleting", "Creating"):
            age_s = (world.master.clock.wall_ns() - row["created_at_ns"]) / SECOND
            if age_s > 120:
                yield f"I8 {row['cluster_id']} is still {row['cluster_phase']} after {age_s:.0f} s ({row['phase']})"
    for host_id, workloads in running.items():
        for workload_id in workloads:
            known = rows.get(workload_id)
            is_wanted = known is not None and known["cluster_phase"] in HOLDING and not known["is_released"]
            if known is None or not is_wanted or known["host_id"] != host_id:
                yield f"I8 {workload_id} is an orphan on {host_id[-6:]}"
    offline = [r["name"] for r in books.rows("SELECT * FROM hosts") if r["link_state"] != "online"]
    yield from _few("I8 hosts that did not come back", offline)
    yield from _few("I8 nobody runs", (m.name for m in (*world.accesses, *world.hosts) if not m.is_up))


def _running(machine: Any) -> set[str]:
    now_ns = machine.clock.monotonic_ns()
    return {
        workload_id
        for workload_id, box in machine.boxes.items()
        if box.started_ns is not None and box.stopped_ns is None and (box.ends_ns is None or box.ends_ns > now_ns)
    }


def all_is_gone(world: "World", books: Books) -> Iterator[str]:
    """After everybody left, nothing is held, nothing runs, nothing is open."""
    is_left = "phase NOT IN ('Deleted', 'Finished', 'Failed')"
    phases = books.rows(f"SELECT cluster_id, phase, reason FROM clusters WHERE {is_left}")
    yield from _few("I8 clusters left", phases)
    slots = books.rows("SELECT slot_id, state, holder FROM slots WHERE state <> 'free' OR holder IS NOT NULL")
    yield from _few("I8 slots left", slots)
    yield from _few("I8 workloads left", books.rows("SELECT workload_id FROM workloads WHERE is_released = 0"))
    yield from _few("I8 boxes left", (list(h.machine.boxes) for h in world.hosts if h.machine.boxes))
    yield from _few("I5 rentals left open", books.rows("SELECT rental_id, state FROM rentals WHERE state = 'open'"))
    limit_ns = world.master.clock.wall_ns() - 120 * SECOND
    opened = books.rows(
        "SELECT command_id, kind, state, step FROM commands WHERE done_at_ns IS NULL AND created_at_ns < ?", limit_ns
    )
    yield from _few("I3 commands without a result", opened)
    yield from _few("dead letters", books.rows("SELECT host_id, kind, error FROM dead_letters"))


def caps_hold(world: "World", books: Books) -> Iterator[str]:
    """Disks of the hosts and queues of the Master stay within what is written down."""
    for host in world.hosts:
        used = sum(len(file.data) for file in host.disk._names.values())
        if used > SPOOL_CAP_BYTES:
            yield f"I10 {host.name} keeps {used} bytes"
    rooms = world.master.rooms
    if rooms is not None:
        waiting = rooms.store.figures.pending
        if waiting > 64:
            yield f"I10 {waiting} writes wait in a settled Master"


def index_is_as_its_rows(world: "World", books: Books) -> Iterator[str]:
    """The placement engine of the living Master has what one has that is made of the rows as they are now."""
    rooms = world.master.rooms
    if rooms is not None:
        yield from _few(
            "I8 hosts that the index has otherwise", rooms.store.read_now(rooms.clusters.nominations.differing)
        )


IDENTITY: tuple[Judge, ...] = (
    certificates_follow,
    older_certificates_are_refused,
    copies_are_fenced,
    quarantined_is_silent,
    older_certificates_are_not_served,
)
SEEN: tuple[Judge, ...] = (caps_hold_throughout, channels_tell_the_whole, secrets_stay_secret, urgent_goes_first)
DURABLE: tuple[Judge, ...] = (acked_is_durable, receipts_kept, ledger_balances)
ALWAYS: tuple[Judge, ...] = (
    *DURABLE,
    stored_once,
    answered_is_kept,
    asked_once_is_made_once,
    one_holder_in_books,
    one_runs_on_each_slot,
    *LEASES,
    deleted_never_runs,
    results_never_change,
    legal_transitions,
    audit_verifies,
    terms_grow,
    charged_is_signed,
    wishes_bound_bills,
    deletes_arrive,
    *SEEN,
    *IDENTITY,
)
SETTLED: tuple[Judge, ...] = (observed_is_desired, caps_hold, index_is_as_its_rows)
ENDED: tuple[Judge, ...] = (*SETTLED, all_is_gone, billed_in_full, backlog_arrived)
HOSTS_ONLY: tuple[Judge, ...] = (one_runs_on_each_slot, deleted_never_runs, epochs_grow_on_hosts)
COPIES: tuple[Judge, ...] = (*IDENTITY, ledger_balances, legal_transitions, audit_verifies, terms_grow)


def at_power_cut(world: "World") -> list[str]:
    """Before the Master loses its power: what is acknowledged would survive the worst of cuts."""
    if world.plan.hosts_only or world.plan.copies:
        return []
    survivors = Books(world.master.power.worst(), forked(world.master.disk, _NO_LUCK))
    return _ask(world, survivors, DURABLE, "power cut")


class _NoLuck(random.Random):
    """Nothing unsynced survives."""

    def randrange(self, *_: object, **__: object) -> int:
        """Nothing of it."""
        return 0


_NO_LUCK = _NoLuck()


def ask(world: "World", judges: tuple[Judge, ...], when: str) -> list[str]:
    """Let these judge the books as they are now."""
    return _ask(world, Books.now(world), judges, when)


def _ask(world: "World", books: Books, judges: tuple[Judge, ...], when: str) -> list[str]:
    at_s = world.clock.monotonic_ns() / SECOND
    try:
        found = ((judge, sentence) for judge in judges for sentence in judge(world, books))
        return [f"{sentence}  [{judge.__name__}, {when}, {at_s:.1f} s]" for judge, sentence in found]
    finally:
        books.close()


def phases(books: Books) -> list[str]:
    """Returns the phases that the books report, in order, for the trace."""
    return [f"{r['number']} {r['at_ns']} {r['actor']} {r['action']} {r['subject']}" for r in books.audit()]
