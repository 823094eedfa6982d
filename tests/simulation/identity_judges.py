"""Judges of who is who: certificates follow one another, a copy is noticed, and what was fenced stays refused."""

from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tests.simulation.books import Books
from tests.simulation.loop import START_WALL_NS
from windrow_proto.units import SECOND

if TYPE_CHECKING:
    from tests.simulation.world import World

NOTED_NS = 3 * SECOND
"""So long a certificate must have been in use to be written down as used: each second, by a store that may be busy."""
UNDER_WAY_NS = 5 * SECOND
"""A message sent before a host was fenced may still be on its way."""
COPIES = ("two processes hold this identity", "two agents use one identity")


def certificates_follow(world: "World", books: Books) -> Iterator[str]:
    """A certificate is given to the holder of the one before it, and each generation to one request."""
    holders: dict[tuple[str, int], bytes] = {}
    for grant in world.witness.grants:
        if grant.generation != grant.asked + 1:
            yield f"I7 {grant.name} asked with generation {grant.asked} and was given {grant.generation}"
        if holders.setdefault((grant.host_id, grant.generation), grant.request) != grant.request:
            yield f"I7 generation {grant.generation} of {grant.host_id[-6:]} was given to two requests"


def older_certificates_are_refused(world: "World", books: Books) -> Iterator[str]:
    """Once a certificate was in use, no connection with an older one is answered."""
    used: dict[str, tuple[int, int]] = {}
    spans: dict[tuple[str, int, int], int] = {}
    for heard in world.witness.heard:
        generation, since_ns = used.get(heard.host_id, (0, 0))
        if heard.generation < generation and heard.at_ns > since_ns + UNDER_WAY_NS:
            yield f"I7 {heard.name} was answered with generation {heard.generation} after {generation}"
        began_ns = spans.setdefault((heard.host_id, heard.generation, heard.epoch), heard.at_ns)
        if heard.generation > generation and heard.at_ns - began_ns >= NOTED_NS:
            used[heard.host_id] = (heard.generation, heard.at_ns)


def copies_are_fenced(world: "World", books: Books) -> Iterator[str]:
    """Under one Master no process is served again after another with its identity was."""
    last: dict[tuple[str, int], tuple[bytes, int]] = {}
    gone: dict[tuple[str, int], set[bytes]] = defaultdict(set)
    for heard in world.witness.heard:
        place = (heard.host_id, heard.epoch)
        boot, connection = last.get(place, (heard.boot, heard.connection))
        if heard.boot in gone[place] and heard.connection > connection:
            yield f"I7 {heard.name} was served again after its copy had been"
        if heard.boot != boot and heard.connection > connection:
            gone[place].add(boot)
        if heard.connection >= connection:
            last[place] = (heard.boot, heard.connection)


def quarantined_is_silent(world: "World", books: Books) -> Iterator[str]:
    """Nobody answers a host in quarantine; and none gets there as a copy that has no copy."""
    quarantined: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in books.audit():
        if row["fields"].get("to") == "quarantined":
            quarantined[row["subject"]].append((row["at_ns"] - START_WALL_NS, 1 << 62))
            if row["subject"] not in world.copied and any(words in row["reason"] for words in COPIES):
                yield f"I7 {row['subject']} was taken for a copy and has none: {row['reason']}"
        elif row["fields"].get("from") == "quarantined" and quarantined[row["subject"]]:
            began_ns, _ = quarantined[row["subject"]].pop()
            quarantined[row["subject"]].append((began_ns, row["at_ns"] - START_WALL_NS))
    for heard in world.witness.heard:
        for began_ns, ended_ns in quarantined[heard.host_id]:
            if began_ns + UNDER_WAY_NS < heard.at_ns < ended_ns:
                yield f"I7 {heard.name} was answered {(heard.at_ns - began_ns) / SECOND:.0f} s after its quarantine"
                return
