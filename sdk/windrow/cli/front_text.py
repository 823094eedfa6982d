"""Text of `windrow` alone: work that runs or waits, how long the balance lasts, what needs somebody, what to do next.
Pure."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from windrow.cli.request import parse_gpu
from windrow.cli.resolving import job_label

Item = dict[str, Any]

KINDS: Final = {"box": "machine", "service": "service"}
"""What people call a cluster of one host; those of several are clusters."""
TROUBLED: Final = ("degraded", "offline", "quarantined")
"""The states of hosts that a person has to look after."""
WAYS: Final = {"open": "open it in the browser", "ssh": "log in"}
SOON: Final = timedelta(minutes=30)
"""Before its end, work is named among what needs somebody: time enough to save or to extend it."""
LOW: Final = timedelta(hours=2)
"""For less than that, the balance needs somebody."""
RECENT: Final = timedelta(hours=24)
"""For so long a job that failed is named."""
SHOWN_MAX: Final = 8
"""Lines of what needs somebody: more would hide the rest."""


BIG: Final = "--gpu 24GB "
WANTED: Final[Mapping[str, Item]] = {
    BIG: parse_gpu("24GB"),
    "--gpu 1 ": parse_gpu("1"),
    "": {},
    f"{BIG}--runtime simulated ": parse_gpu("24GB") | {"runtime": "simulated"},
    "--runtime simulated ": {"runtime": "simulated"},
}
"""Options of the suggested commands, with their fields: the first that this market has."""
REAL: Final = ("run a command in a copy of this folder", "rent a machine for SSH and Jupyter")
PLAYED: Final = ("try a run: a simulated host runs nothing real", "rent a simulated machine, to look around")
"""What the suggested commands do."""


class Matter(NamedTuple):
    """A matter that needs somebody. about: a name. command: what to run about it; empty: nothing."""

    about: str
    text: str
    command: str = ""


def work_of(clusters: Iterable[Item], jobs: Iterable[Item]) -> list[Item]:
    """Machines, services, clusters and jobs in one form, newest first. The cluster of a job is left out: the job stands
    for it, with the hosts and the price of that cluster."""
    clusters = list(clusters)
    by_id = {one["id"]: one for one in clusters}
    found, taken = [], set[str]()
    for job in jobs:
        attempts = job.get("attempts") or []
        taken |= {one["cluster_id"] for one in attempts}
        last = by_id.get(attempts[-1]["cluster_id"], {}) if attempts and not attempts[-1]["ended_at"] else {}
        found.append(_of_job(job, last))
    found += [_of_cluster(one) for one in clusters if one["id"] not in taken]
    return sorted(found, key=lambda one: str(one["created_at"]), reverse=True)


def _of_cluster(one: Item) -> Item:
    return {
        "kind": KINDS.get(one["kind"], "cluster"), "id": one["id"], "name": one["name"], "state": one["phase"],
        "hosts": hosts_of(one), "tier": one.get("tier"), "price_per_hour": one.get("price_per_hour"),
        "cost_so_far": one.get("cost_so_far"), "created_at": one["created_at"], "started_at": one.get("started_at"),
        "ended_at": one.get("ended_at"), "ends_at": one.get("ends_at"), "problem": one.get("problem"),
        "reason": one.get("reason"), "account_id": one.get("account_id"), "ways_in": _ways_in(one),
    }  # fmt: skip


def _ways_in(cluster: Item) -> list[str]:
    """The verbs by which it is entered."""
    asked = cluster.get("request") or {}
    found = ["open"] if asked.get("notebook") or cluster.get("urls") else []
    return [*found, "ssh"] if asked.get("ssh_keys") else found


def _of_job(one: Item, cluster: Item) -> Item:
    return {
        "kind": "job", "id": one["id"], "name": job_label(one), "state": one["state"],
        "hosts": hosts_of(cluster), "tier": cluster.get("tier"), "price_per_hour": cluster.get("price_per_hour"),
        "cost_so_far": one.get("cost_so_far"), "created_at": one["created_at"],
        "started_at": cluster.get("started_at"), "ended_at": one.get("ended_at"), "ends_at": cluster.get("ends_at"),
        "problem": cluster.get("problem"), "reason": one.get("reason"), "account_id": one.get("account_id"),
        "ways_in": [],
    }  # fmt: skip


def hosts_of(cluster: Item) -> list[str]:
    """The names of the hosts of its members, by rank."""
    members = [one for one in cluster.get("workloads") or [] if one.get("is_member", True)]
    return [str(one["host_name"]) for one in sorted(members, key=lambda one: int(one.get("rank") or 0))]


def burn(work: Iterable[Item]) -> Decimal:
    """The price per hour of all that is rented now."""
    prices = (one["price_per_hour"] for one in work if one["started_at"] and one["price_per_hour"])
    return sum(map(Decimal, prices), Decimal(0))


def lasts(balance: str, per_hour: Decimal) -> timedelta | None:
    """For how long the balance pays at this rate; None: nothing is spent."""
    left = max(Decimal(balance), Decimal(0))
    return timedelta(hours=min(float(left / per_hour), 1e6)) if per_hour > 0 else None


def span_text(span: timedelta) -> str:
    """A span in its largest unit, rounded down: `3 days`, `5 h`, `12 min`."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((86_400, "days"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def matters_of_work(work: Iterable[Item], now: datetime) -> list[Matter]:
    """Matters of one's own work: hosts that do not answer, an end that is near, what has just failed."""
    found = []
    for one in work:
        name = str(one["name"])
        if one["ended_at"]:
            if one["state"] == "Failed" and now - time_of(one["ended_at"]) < RECENT:
                why = f": {one['reason']}" if one["reason"] else ""
                found.append(Matter(name, f"failed {span_text(now - time_of(one['ended_at']))} ago{why}", _log(one)))
        elif one["problem"]:
            found.append(Matter(name, str(one["problem"]), f"windrow status {name}"))
        elif one["ends_at"] and time_of(one["ends_at"]) - now < SOON:
            found.append(Matter(name, f"ends in {span_text(time_of(one['ends_at']) - now)}", f"windrow status {name}"))
    return found


def matters_of_money(left: timedelta | None) -> list[Matter]:
    """An empty balance ends all that runs."""
    if left is None or left >= LOW:
        return []
    return [Matter("balance", f"lasts {span_text(left)} at this rate; what runs ends with it", "windrow ps")]


def matters_of_hosts(hosts: Iterable[Item]) -> list[Matter]:
    """Hosts that a person has to look after, each with its remedy."""
    found = []
    for host in hosts:
        why = str(host.get("headline_reason") or host.get("reason") or "").rstrip(".")
        remedy = str(host.get("headline_remedy") or host.get("remedy") or "")
        said = ". ".join(part for part in (f"{host['headline']}: {why}" if why else host["headline"], remedy) if part)
        found.append(Matter(str(host["name"]), said, f"windrow host show {host['name']}"))
    return found


def matters_of_master(health: Item) -> list[Matter]:
    """Troubles of the Master, for its operators, and the hosts that it says are in trouble."""
    master = health["master"]
    found = [Matter("Master", str(one), "windrow doctor") for one in master["problems"]]
    found += [Matter("Master", f"{one['detail']} {one['remedy']}".strip()) for one in master["conditions"]]
    return found + matters_of_hosts(health["fleet"]["troubled"])


def next_commands(work: Sequence[Item], roles: Iterable[str], wanted: str = BIG) -> list[tuple[str, str]]:
    """Commands that fit what there is, each with what it does. wanted: one of WANTED."""
    does = PLAYED if "simulated" in wanted else REAL
    found, known = [], set(roles)
    running = [one for one in work if one["state"] in ("Running", "Degraded")]
    entered = next((one for one in running if one["ways_in"]), None)
    if entered:
        found += [(f"windrow {way} {entered['name']}", WAYS[way]) for way in entered["ways_in"]]
    if running:
        found += [(f"windrow logs -f {running[0]['name']}", "follow the log"), ("windrow top", "use of GPUs")]
    elif "renter" in known:
        found += [
            ("windrow gpus", "what can be rented"),
            (f"windrow run {wanted}-- python train.py", does[0]),
            (f"windrow cluster create --name lab {wanted}".rstrip(), does[1]),
        ]
    if known & {"provider", "operator"}:
        found += [("windrow host ls", "hosts"), ("windrow token add --join", "add a host")]
    return [*found, ("windrow --help", "all commands")]


def _log(one: Item) -> str:
    return f"windrow logs {one['name']}" if one["kind"] == "job" else f"windrow status {one['name']}"


def time_of(text: str) -> datetime:
    """A time as the Master writes it."""
    return datetime.fromisoformat(text)
