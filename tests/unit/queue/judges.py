"""Judges of the queue: each plays one scene and returns what is wrong with it, in words; nothing, if it is right."""

import random
from collections import Counter
from collections.abc import Callable

from tests.unit.queue.cluster import BEGAN, MILLI, Cluster, Job, backlog, flood, job, projects, tree
from windrow_master.queue.model import Amounts, End, PriorityClass, When
from windrow_master.queue.order import Queue
from windrow_master.queue.quota import NodeLevel as Level
from windrow_master.queue.quota import Quota, check
from windrow_master.queue.quota import QuotaItem as Item
from windrow_master.queue.shares import ROOT, Node
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

CARD = Amounts(gpus=MILLI, cpus=MILLI)


def weights(hosts: int = 2, seed: int = 0) -> list[str]:
    """Backlogs of projects with weights 1:2:4 are served so within 2 %, after ten half-lives of ten minutes."""
    cluster = Cluster(tree(8 * hosts, 10 * MINUTE, *projects(1, 2, 4)), hosts)
    chance = random.Random(seed)
    for at, weight in enumerate((1, 2, 4)):
        cluster.submit(backlog([f"p{at}"], 56 * hosts * weight, chance, 5 * MINUTE))
    cluster.run(100 * MINUTE)
    parts = {f"p{at}": weight / 7 for at, weight in enumerate((1, 2, 4))}
    served = sum(cluster.served.values())
    errors = {leaf: cluster.served[leaf] / served / part - 1 for leaf, part in parts.items()}
    return [f"{leaf} is off its share by {error:+.1%}" for leaf, error in errors.items() if abs(error) > 0.02]


def large_in_flood(load: float = 0.95, milli: int = MILLI, hosts: int = 1, leaf: str = "p0") -> list[str]:
    """A request of eight cards in a flood of small ones starts long before its age cap."""
    cluster = Cluster(tree(8 * hosts, 7 * DAY, *projects(1, 1)), hosts, age_cap_ns=60 * MINUTE)
    part = milli if 2 * milli <= MILLI else MILLI
    every_ns = int(10 * MINUTE * part / MILLI / (8 * hosts) / load)
    cluster.submit(flood("p0", 100 * MINUTE, every_ns, 10 * MINUTE, milli=milli))
    cluster.submit([job("large", leaf, 20 * MINUTE + 1, 10 * MINUTE, 8)])
    cluster.run(80 * MINUTE)
    small = sum(name != "large" for name in cluster.started)
    found = [] if small > 30 * MINUTE / every_ns / max(1, load) else [f"only {small} small ones started"]
    return found if "large" in cluster.started else [*found, "the large one did not start within its age cap"]


def backfill() -> list[str]:
    """Beside the reservation of the first what ends before it starts at once, and what does not waits for it."""
    cluster = Cluster(tree(8, DAY, *projects(1)), 1)
    cluster.submit([job("runs", "p0", 0, HOUR, 6), job("head", "p0", MINUTE, HOUR, 8)])
    cluster.submit(job(f"of-{minutes}", "p0", 2 * MINUTE, minutes * MINUTE) for minutes in (30, 57, 90))
    cluster.run(3 * HOUR)
    starts = {name: at_ns // MINUTE for name, at_ns in cluster.started.items()}
    right = {"runs": 0, "head": 60, "of-30": 2, "of-57": 2, "of-90": 120}
    return [] if starts == right else [f"they start after {starts} minutes"]


def organisations(projects_of_one: int = 1000) -> list[str]:
    """A thousand projects of one organisation together get as much as another organisation's only one."""
    crowd = [Node(node_id=f"c{at}", parent="crowd") for at in range(projects_of_one)]
    nodes = [Node(node_id=one, parent=ROOT) for one in ("crowd", "alone")]
    queue = Queue(tree(64, DAY, *nodes, *crowd, Node(node_id="a0", parent="alone")))
    for at in range(projects_of_one):
        queue.put(job(f"c-{at}", f"c{at}", 0, HOUR).entry, BEGAN)
        queue.put(job(f"a-{at}", "a0", 0, HOUR).entry, BEGAN)
    started = Counter[str]()
    for _ in range(32):
        entry = next(queue.first(BEGAN))
        queue.start(entry, BEGAN)
        started[entry.leaf[0]] += 1
    return [] if started == {"c": 16, "a": 16} else [f"of 32 places the organisations have {dict(started)}"]


def aging() -> list[str]:
    """Of a class and leaf, who waits for the age cap is passed by nothing that came later, whatever its priority."""
    queue = Queue(tree(8, DAY, *projects(1)), age_cap_ns=HOUR)
    queue.put(job("old", "p0", 0, HOUR, priority=-100).entry, BEGAN)
    found = list[str]()
    for minutes, first in ((10, "young-10"), (59, "young-10"), (61, "young-10"), (90, "young-10")):
        queue.put(job(f"young-{minutes}", "p0", minutes * MINUTE, HOUR, priority=100).entry, BEGAN)
        names = [one.entry_id for one in queue.first(BEGAN + minutes * MINUTE)]
        behind = {f"young-{one}" for one in (61, 90)} & set(names[: names.index("old")])
        if names[0] != first or behind:
            found.append(f"after {minutes} minutes the order is {names}")
    return found


def array_throttle() -> list[str]:
    """Of an array of 30 with a throttle of 4 never more than 4 run, and all of them in the end."""
    cluster = Cluster(tree(8, DAY, *projects(1)), 1)
    cluster.submit(job(f"a-{at}", "p0", 0, MINUTE, array="a", index=at, at_once=4) for at in range(30))
    cluster.run(9 * MINUTE)
    most, ended = cluster.most["a"], cluster.served["p0"] // (MINUTE * MILLI)
    return [] if (most, ended) == (4, 30) else [f"{most} ran at once, and {ended} have ended"]


def holds() -> list[str]:
    """A held entry does not start; released it does; dropped meanwhile it does not."""
    queue = Queue(tree(8, DAY, *projects(1)))
    for name, by in (("held", "ada"), ("free", ""), ("gone", "ada")):
        queue.put(job(name, "p0", 0, HOUR, held_by=by).entry, BEGAN)
    before = [one.entry_id for one in queue.first(BEGAN)]
    queue.drop("gone")
    queue.release("held", BEGAN + SECOND)
    after = [one.entry_id for one in queue.first(BEGAN + SECOND)]
    return [] if (before, after) == (["free"], ["free", "held"]) else [f"{before}, then {after}"]


def dependencies() -> list[str]:
    """An entry that comes after a job starts after the end that it asks for, and never after another one."""
    found = list[str]()
    for when, is_ok, starts in ((When.ANY, False, True), (When.OK, True, True), (When.OK, False, False)):
        queue = Queue(tree(8, DAY, *projects(1)))
        queue.put(job("next", "p0", 0, HOUR, after=(("first", when),)).entry, BEGAN)
        never = queue.ended("first", End(is_ok, BEGAN))
        if bool(list(queue.first(BEGAN))) is not starts or bool(never) is starts:
            found.append(f"after {when} with {is_ok=}: {never=}")
    return found


def quotas() -> list[str]:
    """A quota is used up to its last unit, and not beyond."""
    quota = Quota(node_id="lab", level=Level.PROJECT, item=Item.GPUS, tier="h100", limit=8 * MILLI)
    cases = ((0, 8000, True), (0, 8001, False), (7999, 1, True), (8000, 1, False), (12000, 0, True), (12000, 1, False))
    return [
        f"{used} used, {asked} asked: {'allowed' if (found := check([quota], used_of, asked_of)) is None else found}"
        for used, asked, is_fine in cases
        for used_of, asked_of in [({("lab", (Item.GPUS, "h100")): used}, {(Item.GPUS, "h100"): asked})]
        if (check([quota], used_of, asked_of) is None) is not is_fine
    ]


def borrowing() -> list[str]:
    """A node that does not borrow keeps to its guarantee though all else is free; others have up to the ceiling."""
    rules = (("keeps", 250_000, 1_000_000, False, 2), ("borrows", 125_000, 500_000, True, 4))
    nodes = [
        Node(node_id=name, parent=ROOT, guarantee=guarantee, ceiling=ceiling, is_borrowing=does)
        for name, guarantee, ceiling, does, _ in rules
    ]
    cluster = Cluster(tree(8, DAY, *nodes), 1)
    cluster.submit(job(f"{name}-{at}", name, 0, HOUR) for name, *_ in rules for at in range(8))
    cluster.run(MINUTE)
    held = Counter(name.split("-")[0] for name in cluster.started)
    return [f"{name} has {held[name]} cards, not {most}" for name, *_, most in rules if held[name] != most]


def guarantees() -> list[str]:
    """A node below its guarantee comes first, whatever it used before."""
    nodes = [Node(node_id="owner", parent=ROOT, guarantee=500_000), Node(node_id="other", parent=ROOT)]
    shares = tree(8, DAY, *nodes)
    shares.charge("owner", Amounts(gpus=8 * MILLI), BEGAN - DAY, BEGAN, BEGAN)
    cluster = Cluster(shares, 1)
    cluster.submit(job(f"{name}-{at}", name, 0, HOUR) for name in ("other", "owner") for at in range(8))
    cluster.run(MINUTE)
    held = Counter(name.split("-")[0] for name in cluster.started)
    return [] if held == {"owner": 4, "other": 4} else [f"the cards are held as {dict(held)}"]


def maintenance() -> list[str]:
    """Nothing starts on a host that would not end before its maintenance, and all that would does."""
    cluster = Cluster(tree(8, DAY, *projects(1)), 1)
    cluster.profile.drain("host-0", BEGAN + 30 * MINUTE, BEGAN + 60 * MINUTE)
    takes = {"short": 20 * MINUTE, "long": 40 * MINUTE, "endless": 50 * MINUTE}
    jobs = [job(name, "p0", MINUTE, span, limit_ns=None if name == "endless" else span) for name, span in takes.items()]
    wake = [job("wake", "p0", 60 * MINUTE, MINUTE)]
    cluster.submit([*jobs, *wake])
    cluster.run(2 * HOUR)
    starts = {name: cluster.started.get(name, -1) // MINUTE for name in takes}
    return [] if starts == {"short": 1, "long": 60, "endless": 60} else [f"they start after {starts} minutes"]


def decay() -> list[str]:
    """Usage is what a sum over small steps gives: of runs, of pauses, and of what is charged later."""
    half_life_ns, step_ns, now_ns = HOUR, SECOND, BEGAN
    live, charged = (tree(8, half_life_ns, Node(node_id="one", parent=ROOT)) for _ in range(2))
    summed = 0.0
    for cards, minutes in ((2, 30), (0, 90), (5, 45)):
        amounts, before_ns = Amounts(gpus=cards * MILLI), now_ns
        live.start("one", amounts, now_ns)
        for _ in range(minutes * MINUTE // step_ns):
            summed = (summed + cards * MILLI * step_ns / 2) / 2 ** (
                step_ns / half_life_ns
            ) + cards * MILLI * step_ns / 2
        now_ns += minutes * MINUTE
        live.stop("one", amounts, now_ns)
        charged.charge("one", amounts, before_ns, now_ns, now_ns)
    mean = summed / (8 * MILLI) / (half_life_ns / 0.6931471805599453)
    now_ns += half_life_ns
    used = [one.standing("one", now_ns).used for one in (live, charged)]
    return [f"used {one}, not {mean / 2}" for one in used if abs(one / (mean / 2) - 1) > 1e-6]


def classes() -> list[str]:
    """Classes come in their order, and within one its own priority decides."""
    queue = Queue(tree(8, DAY, *projects(1, 1)))
    order = (
        (PriorityClass.SPOT, 100),
        (PriorityClass.NORMAL, -5),
        (PriorityClass.URGENT, -100),
        (PriorityClass.NORMAL, 5),
    )
    for at, (of, priority) in enumerate(order):
        queue.put(job(f"j{at}", "p0", at, HOUR, priority_class=of, priority=priority).entry, BEGAN)
    names = [one.entry_id for one in queue.first(BEGAN)]
    return [] if names == ["j2", "j3", "j1", "j0"] else [f"the order is {names}"]


def estimated(seed: int, count: int = 700, load: float = 0.95, hosts: int = 4) -> Cluster:
    """A cluster that estimates every start: lengths over two magnitudes, limits of up to six times as much."""
    chance = random.Random(seed)
    cluster = Cluster(tree(8 * hosts, HOUR, *projects(1, 2, 4)), hosts, estimates=True)
    mean_ns = 18 / 7 * 5 * 1.65 * MINUTE / (8 * hosts) / load
    at_ns, jobs = 0, list[Job]()
    for number in range(count):
        takes_ns = int(chance.lognormvariate(0, 1) * 5 * MINUTE) + SECOND
        at_ns += int(chance.expovariate(1) * mean_ns)
        cards, limit_ns = chance.choice((1, 1, 1, 1, 2, 4, 8)), int(takes_ns * chance.choice((1.05, 1.5, 3, 6)))
        named = {"name": f"n{chance.randrange(5)}", "limit_ns": limit_ns}
        jobs.append(job(f"j{number}", f"p{chance.randrange(3)}", at_ns, takes_ns, cards, **named))
    cluster.submit(jobs)
    cluster.run(at_ns)
    return cluster


def intervals(seed: int = 0, count: int = 160, least: float = 0.70, most: float = 0.90) -> list[str]:
    """The 80 % intervals of estimated starts hold as often as they say."""
    one = estimated(seed, count).estimator
    part = one.held / max(1, one.scored)
    return [] if one.scored >= 40 and least <= part <= most else [f"{one.held} of {one.scored} intervals held"]


JUDGES: tuple[Callable[[], list[str]], ...] = (
    weights,
    large_in_flood,
    backfill,
    organisations,
    aging,
    array_throttle,
    holds,
    dependencies,
    quotas,
    borrowing,
    guarantees,
    maintenance,
    decay,
    classes,
    intervals,
)
