"""Judges of what is bounded, hidden and urgent: caps (I10), secrets (I11), who goes first (I12), old certificates (I7);
and of what goes through channels (I1).

By what was seen in queues, on disks and on the wire (`caps.py`, `hush.py`, `order.py`, `talks.py`, the witness) and in
the books.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.books import Books
from tests.simulation.hush import MARK, found_in
from tests.simulation.identity_judges import NOTED_NS, UNDER_WAY_NS
from tests.simulation.loop import START_WALL_NS
from windrow_proto.model import CommandKind
from windrow_proto.units import SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

ARRIVES_NS: Final = 24 * SECOND
"""Three tries of a delete, each after the five seconds of RESEND_NS (link/downlink.py) and the one of TICK_NS
(link/hub.py), since a relay may drop one, and twice two hops of a second and a half."""
CLOCK_JUMPED = "master's clock jumps"


def caps_hold_throughout(world: "World", books: Books) -> Iterator[str]:
    """No queue and no disk was ever seen above its cap, at any look during the history."""
    for sentence in world.watch.over.values():
        yield f"I10 {sentence}"


def channels_tell_the_whole(world: "World", books: Books) -> Iterator[str]:
    """Bytes that came back through a channel that ended well are all that was said: nothing of it was shed or kept
    back."""
    for sentence in world.talker.broken[:2]:
        yield f"I1 a part was passed on for the whole: {sentence}"


# --- I11: secrets ---------------------------------------------------------------------------------------------------


def secrets_stay_secret(world: "World", books: Books) -> Iterator[str]:
    """Secrets of renters, joining hosts and keys are in no log, crash, audit, event or open frame, and on no disk but
    where they must be."""
    yield from (f"I11 a secret in the open: {frame}" for frame in world.witness.in_the_open[:2])
    mark = MARK.encode()
    of_clusters = [row["secret"] for row in books.rows("SELECT secret FROM clusters WHERE secret IS NOT NULL")]
    for said in (*world.hush.logged, *world.crashes):
        if MARK in said or found_in(said.encode()) or any(secret in said for secret in of_clusters):
            yield f"I11 a secret was logged: {said[:300]}"
            break
    yield from _in_tables(books)
    log = b"".join(file.data for file in world.master.disk._names.values())
    if mark in log:
        yield "I11 a renter's secret is in the telemetry log"
    for place, data in (("log", log), ("database", books.raw())):
        if what := found_in(data):
            yield f"I11 {what} is in the Master's {place}"
    for host in world.hosts:
        for path, file in host.disk._names.items():
            if what := found_in(bytes(file.data)):
                yield f"I11 {what} is in {path} of {host.name}"
            if mark in file.data:
                yield f"I11 a renter's secret is in {path} of {host.name}"


def _in_tables(books: Books) -> Iterator[str]:
    for table in books.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"):
        name = table["name"]
        columns = [row["name"] for row in books.rows(f"PRAGMA table_info('{name}')")]
        if not columns:
            continue
        where = " OR ".join(f'instr("{column}", ?1)' for column in columns)
        found = books.rows(f'SELECT count(*) AS found FROM "{name}" WHERE {where}', MARK)[0]["found"]
        if found:
            yield f"I11 a renter's secret is in {found} rows of {name}"


# --- I12: who goes first --------------------------------------------------------------------------------------------


def urgent_goes_first(world: "World", books: Books) -> Iterator[str]:
    """On a host and in an Access no sample went while what is urgent waited that could have gone."""
    late = world.witness.order.late
    if late:
        yield f"I12 {late[0]}, and so {len(late)} times"


def deletes_arrive(world: "World", books: Books) -> Iterator[str]:
    """A host whose samples of after a delete are acknowledged has been told of the delete as well, or soon is."""
    if world.happened.get(CLOCK_JUMPED):
        return  # the books tell another time then
    began: dict[int, int] = {}
    for served in world.witness.served.values():
        for one in served:
            began.setdefault(one.connection, one.at_ns)
    query = "SELECT * FROM commands WHERE kind = ?"
    for row in books.rows(query, CommandKind.DELETE.value):
        asked_ns = row["created_at_ns"] - START_WALL_NS
        over = (row["not_after_ns"], row["done_at_ns"])
        ends = [world.witness.delivered_ns.get(row["command_id"]), *(at - START_WALL_NS for at in over if at)]
        until_ns = min((at for at in ends if at is not None), default=1 << 62)
        for one in world.witness.served[row["host_id"]]:
            due_ns = max(asked_ns, began[one.connection]) + ARRIVES_NS
            if due_ns < one.at_ns < until_ns and one.sent_ns > asked_ns:
                late_s = (one.at_ns - asked_ns) / SECOND
                yield f"I12 {row['host_id'][-6:]} was acknowledged samples {late_s:.0f} s after a delete it has not got"
                break


# --- I7: older certificates -----------------------------------------------------------------------------------------


def older_certificates_are_not_served(world: "World", books: Books) -> Iterator[str]:
    """Once a certificate was in use, nothing at all is said on a connection with an older one: no ack, no command."""
    in_use: dict[str, list[tuple[int, int]]] = defaultdict(list)
    spans: dict[tuple[str, int, int], int] = {}
    for heard in world.witness.heard:
        began_ns = spans.setdefault((heard.host_id, heard.generation, heard.epoch), heard.at_ns)
        newest = in_use[heard.host_id][-1][1] if in_use[heard.host_id] else 0
        if heard.generation > newest and heard.at_ns - began_ns >= NOTED_NS:
            in_use[heard.host_id].append((heard.at_ns, heard.generation))
    for at_ns, host_id, name, generation, kind in world.witness.spoken:
        for since_ns, newer in in_use.get(host_id, ()):
            if generation < newer and at_ns > since_ns + UNDER_WAY_NS:
                yield f"I7 {name} was sent {kind} with generation {generation} after {newer}"
                return
