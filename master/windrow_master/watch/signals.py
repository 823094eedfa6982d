"""Turns an event into signals: what is raised, and what is over. Pure.

What the event itself does not say is asked of `Facts`, as it is now: an event may be read a moment after it came.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from windrow_master.clusters.kinds import multi_host
from windrow_master.clusters.messages import RankFailed
from windrow_master.clusters.model import Cluster, ClusterPhase
from windrow_master.clusters.reports import exit_text
from windrow_master.fleet.flaps import SETTLED_NS
from windrow_master.fleet.model import AdminState, Host
from windrow_master.jobs.model import Job
from windrow_master.store.model import EventRow
from windrow_master.watch.model import OPERATORS, Clear, Raise, Signal, Window
from windrow_master.watch.rules import BUDGETS, FAULTS, LEASE_NS, NOTICE, RULES, of_condition
from windrow_proto.conditions import Severity, split
from windrow_proto.units import HOUR, MINUTE, SECOND, time_text
from windrow_proto.xids import XIDS

SAME_JOB: Final = 3
"""Hosts of one job, or cluster, with the same trouble at once: it is the job's."""
SAME_OWNER: Final = 10
"""Hosts of one account with the same trouble at once: one alert is enough."""
UUID_CHARS: Final = 12
"""Of a GPU's UUID: enough to tell a host's cards apart."""
DECIDED: Final = frozenset({AdminState.MAINTENANCE, AdminState.QUARANTINED, AdminState.RETIRED})
"""States of a host that people chose, in which nobody wants to hear of it."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A maintenance window, the names of its hosts in a few words, and the accounts that own or rent them."""

    window: Window
    name: str
    audiences: tuple[str, ...]


class Facts(Protocol):
    """What is known of hosts and work."""

    def host(self, host_id: str) -> Host | None:
        """One host."""

    def cluster(self, cluster_id: str) -> Cluster | None:
        """One cluster."""

    def job(self, job_id: str) -> Job | None:
        """One job."""

    def rental(self, cluster_id: str, host_id: str) -> str | None:
        """The id of the newest rental of a cluster on a host."""

    def spread_over(self, host_id: str) -> tuple[str, str] | None:
        """The id and the name of the job or cluster over several hosts that this host works for; None: none."""

    def planned(self, window_id: str) -> Planned | None:
        """One maintenance window."""


Read = Callable[[EventRow, Facts], Iterable[Signal]]


def signals_of(row: EventRow, facts: Facts) -> Iterable[Signal]:
    """The signals of one event."""
    read = READERS.get(row.kind)
    return () if read is None else read(row, facts)


def subject(row: EventRow, prefix: str) -> str:
    """The event's subject of this kind; empty: it has none."""
    return next((one for one in row.subjects if one.startswith(f"{prefix}_")), "")


def about_host(host: Host) -> tuple[str, ...]:
    """Who is told about a host."""
    return OPERATORS, host.owner_account


# --- hosts ---


def condition_signals(
    host: Host, code: str, text: str, facts: Facts, clusters: Collection[str] = (), xid: str = ""
) -> Iterable[Signal]:
    """The signal of a condition that holds on a host. clusters: that have the GPU which it is a fault of; xid: what its
    driver said, by which there is a remedy of its own."""
    rule, about = of_condition(code), split(code)[1]
    if rule is None or host.admin_state in DECIDED or (not clusters and _is_out(host, rule.code)):
        return
    gpu = host.gpu(about) if about else None
    if gpu is not None:
        text = f"{text.rstrip('.')}. The card is {gpu.name}, {gpu.uuid[:UUID_CHARS]}."
    # By the id of the rental, which its provider knows, too; who rents is not the provider's to know.
    rentals = sorted(filter(None, (facts.rental(one, host.host_id) for one in clusters)))
    if rentals:
        text += f" It was rented: {', '.join(rentals)}."
    name = host.name if not about else f"{host.name}, GPU {gpu.index}" if gpu is not None else f"{host.name}, {about}"
    group = facts.spread_over(host.host_id)
    wider, wider_name, least = (*group, SAME_JOB) if group else (host.owner_account, "many hosts", SAME_OWNER)
    known = XIDS.get(int(xid)) if xid.isdecimal() else None
    yield rule.raised(
        **({} if known is None else {"remedy": known.remedy}),
        severity=Severity.PAGE if clusters else rule.severity,
        cause=host.host_id, subject=about or host.host_id, name=name, text=text, audiences=about_host(host),
        held_by=(("host.lost", host.host_id),), same=FAULTS if rule.code in FAULTS else (),
        wider=wider, wider_name=wider_name, wider_least=least, simulated=host.simulated,
    )  # fmt: skip


def _is_out(host: Host, rule: str) -> bool:
    """A faulty GPU that nobody has on a host that takes nothing new is out: nobody can meet it."""
    return host.admin_state is AdminState.DRAINING and rule in FAULTS


def _condition_raised(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host, code = facts.host(subject(row, "host")), row.fields.get("code", "")
    if host is None:
        return
    clusters = [one for one in row.subjects if one.startswith("cluster_")]
    # What is over again by now is cleared by an event that follows.
    yield from condition_signals(host, code, row.text, facts, clusters, row.fields.get("xid", ""))
    for one in host.conditions if split(code)[0] in FAULTS else ():
        rule, about = split(one.code)
        if rule in FAULTS and about == split(code)[1] and one.code != code:  # told once, with this one
            yield from condition_signals(host, one.code, f"{host.name}: {one.detail}", facts, clusters)


def _condition_cleared(row: EventRow, facts: Facts) -> Iterable[Signal]:
    code, about = split(row.fields.get("code", ""))
    host_id = subject(row, "host")
    yield Clear(host_id, code, about or host_id)


def _host_draining(row: EventRow, facts: Facts) -> Iterable[Signal]:
    if row.actor != "master":  # a maintenance window drains, too: its alerts are silent, and told at its end
        yield from (Clear(subject(row, "host"), rule) for rule in FAULTS)


def _host_lost(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host = facts.host(subject(row, "host"))
    if host is None or host.admin_state in DECIDED:
        return
    is_rented = row.fields.get("held", "0") != "0"
    yield RULES["host.lost"].raised(
        severity=Severity.PAGE if is_rented else Severity.TICKET,
        cause=host.host_id, subject=host.host_id, name=host.name, text=row.text, audiences=about_host(host),
        held_by=(("relay.down", host.access_id),), wider=host.owner_account, wider_name="many hosts",
        wider_least=SAME_OWNER, simulated=host.simulated,
    )  # fmt: skip


def _host_online(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host_id = subject(row, "host")
    yield Clear(host_id, "host.lost")
    host, settling_ns = facts.host(host_id), int(row.fields.get("settling_s", 0)) * SECOND
    if host is not None and settling_ns > SETTLED_NS:
        yield RULES["host.flapping"].raised(
            cause=host_id, subject=host_id, name=host.name, text=row.text, audiences=about_host(host),
            until_ns=row.at_ns + settling_ns, simulated=host.simulated,
        )  # fmt: skip


def _host_decided(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host_id = subject(row, "host")
    yield Clear(host_id)
    host = facts.host(host_id)
    if row.kind == "host.quarantined" and row.actor in ("", "master") and host is not None:
        yield RULES["host.quarantined"].raised(
            cause=host_id, subject=host_id, name=host.name, text=row.text, audiences=about_host(host),
            simulated=host.simulated,
        )  # fmt: skip


def _host_active(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host_id = subject(row, "host")
    yield Clear(host_id, "host.quarantined")
    host = facts.host(host_id)
    for condition in host.conditions if host is not None else ():
        assert host is not None
        yield from condition_signals(host, condition.code, f"{host.name}: {condition.detail}", facts)


def _host_moment(row: EventRow, facts: Facts) -> Iterable[Signal]:
    host, is_driver = facts.host(subject(row, "host")), row.kind == "host.changed"
    if host is None or host.admin_state in DECIDED or (is_driver and "driver_to" not in row.fields):
        return
    about = next((one for one in row.subjects if not one.startswith("host_")), host.host_id)
    yield RULES["driver.changed" if is_driver else "gpu.ecc"].raised(
        cause=host.host_id, subject=about, name=host.name, text=row.text, audiences=about_host(host),
        simulated=host.simulated,
    )  # fmt: skip


def _maintenance(row: EventRow, facts: Facts) -> Iterable[Signal]:
    window_id = subject(row, "maintenance")
    planned = None if row.kind == "maintenance.began" else facts.planned(window_id)
    if row.kind == "maintenance.removed":
        yield Clear(window_id, NOTICE, window_id, row.text)
    elif planned is not None and planned.window.ended_at_ns is None:
        yield RULES[NOTICE].raised(
            cause=window_id, subject=window_id, name=planned.name, text=row.text, audiences=planned.audiences,
            until_ns=planned.window.until_ns, is_news=True,
        )  # fmt: skip


def _relay(row: EventRow, facts: Facts) -> Iterable[Signal]:
    access_id = subject(row, "access")
    if row.kind != "access.lost":
        yield Clear(access_id, "relay.down", access_id)
    elif row.fields.get("drained") != "1":
        yield RULES["relay.down"].raised(
            cause=access_id, subject=access_id, name=row.fields.get("region") or access_id, text=row.text,
            audiences=(OPERATORS,),
        )  # fmt: skip


def _relay_kept_back(row: EventRow, facts: Facts) -> Iterable[Signal]:
    access_id = subject(row, "access")
    yield RULES["relay.one_sided"].raised(
        cause=access_id, subject=access_id, name=f"relay {access_id[-4:]}", text=row.text, audiences=(OPERATORS,),
        held_by=(("relay.down", access_id),),
    )  # fmt: skip


# --- work ---


def _job(row: EventRow, facts: Facts) -> Iterable[Signal]:
    job, state = facts.job(subject(row, "job")), row.kind.partition(".")[2]
    if job is None:
        return
    if state != "queued":
        yield Clear(job.group, "job.queued", job.job_id)
    if state in ("running", "succeeded", "failed", "cancelled", "lost"):
        yield Clear(job.group, "job.retried", job.job_id)
    code = {"queued": "job.queued", "migrating": "job.retried", "failed": "job.failed", "lost": "job.failed"}.get(state)
    if code is not None:
        audiences = (job.account_id, OPERATORS) if state == "queued" else (job.account_id,)
        yield RULES[code].raised(
            cause=job.group, subject=job.job_id, name=job.name, text=row.text, audiences=audiences,
            simulated=job.request.simulated,
        )  # fmt: skip


def _cluster(row: EventRow, facts: Facts) -> Iterable[Signal]:
    cluster, phase = facts.cluster(subject(row, "cluster")), row.kind.partition(".")[2]
    if cluster is None:
        return
    named = {"cause": cluster.cluster_id, "subject": cluster.cluster_id, "name": cluster.name, "text": row.text}
    told = {"audiences": (cluster.account_id,), "simulated": cluster.request.simulated}
    if phase == "degraded":
        if multi_host.is_told_with_its_log(cluster, row.text):
            return  # rank_failed, below
        yield RULES["cluster.degraded"].raised(**named, **told)
    elif phase == "running":
        yield Clear(cluster.cluster_id, "cluster.degraded")
        longest_ns, began_ns = cluster.request.max_duration_ns, cluster.started_at_ns
        if longest_ns is not None and longest_ns >= HOUR and began_ns is not None:
            text = f"{cluster.name} ends in {LEASE_NS // MINUTE} minutes by its duration"
            after_ns = began_ns + longest_ns - LEASE_NS
            yield RULES["lease.ending"].raised(**named | {"text": text}, **told, after_ns=after_ns)
    elif phase == "failed":
        yield from (Clear(cluster.cluster_id, rule) for rule in ("cluster.degraded", "lease.ending", "lease.idle"))
    else:
        yield Clear(cluster.cluster_id)


def rank_failed(fact: RankFailed) -> Raise:
    """The signal of the first rank that failed, with the last lines of its log below the first line of the text."""
    cluster, first = fact.cluster, fact.workload
    at = "" if first.ended_at_ns is None else f", at {time_text(first.ended_at_ns)} by the Master's clock"
    said = f"{multi_host.named(first)} failed first of {fact.ranks}{at}: {exit_text(first)}."
    last = "Its last lines:" if fact.lines else "Its log could not be had yet."
    return RULES["cluster.rank_failed"].raised(
        cause=cluster.cluster_id, subject=cluster.cluster_id, name=cluster.name,
        text="\n".join((f"{said[0].upper()}{said[1:]} {last}", *fact.lines)), audiences=(cluster.account_id,),
        simulated=cluster.request.simulated,
    )  # fmt: skip


def _volume(row: EventRow, facts: Facts) -> Iterable[Signal]:
    cluster = facts.cluster(subject(row, "cluster"))
    if cluster is not None:
        yield RULES["volume.unsaved"].raised(
            cause=cluster.cluster_id, subject=cluster.cluster_id, name=cluster.name, text=row.text,
            audiences=(cluster.account_id,), simulated=cluster.request.simulated,
        )  # fmt: skip


# --- money ---


def _budget(row: EventRow, facts: Facts) -> Iterable[Signal]:
    """A limit has the cause of its spender, the budget of a rental that of its cluster."""
    percent, account_id = int(row.fields["percent"]), subject(row, "account")
    spender = row.fields.get("spender") or subject(row, "cluster")
    about = row.fields.get("limit", spender)
    for less in BUDGETS:
        if less < percent:
            yield Clear(spender, f"budget.{less}", about)
    until = row.fields.get("until_ns")
    yield RULES[f"budget.{percent}"].raised(
        cause=spender, subject=about, name=row.fields.get("name", spender), text=row.text, audiences=(account_id,),
        until_ns=int(until) if until else None,
    )  # fmt: skip


def _limit_changed(row: EventRow, facts: Facts) -> Iterable[Signal]:
    for one in row.subjects:
        yield from (Clear(one, f"budget.{percent}") for percent in BUDGETS)


def _funds_low(row: EventRow, facts: Facts) -> Iterable[Signal]:
    account_id, rental_id = subject(row, "account"), subject(row, "rental")
    cluster = facts.cluster(subject(row, "cluster"))
    yield RULES["balance.low"].raised(
        cause=account_id, subject=rental_id, name=cluster.name if cluster is not None else rental_id, text=row.text,
        audiences=(account_id,),
    )  # fmt: skip


def _credited(row: EventRow, facts: Facts) -> Iterable[Signal]:
    yield from (Clear(one, "balance.low") for one in row.subjects if one.startswith("account_"))


def _rental_closed(row: EventRow, facts: Facts) -> Iterable[Signal]:
    cluster = facts.cluster(subject(row, "cluster"))
    if cluster is not None:
        yield Clear(cluster.account_id, "balance.low", subject(row, "rental"))
        yield from (Clear(cluster.cluster_id, f"budget.{percent}") for percent in BUDGETS)


READERS: Final[Mapping[str, Read]] = {
    "condition.raised": _condition_raised,
    "condition.cleared": _condition_cleared,
    "host.lost": _host_lost,
    "host.online": _host_online,
    "host.active": _host_active,
    "host.draining": _host_draining,
    **dict.fromkeys(("host.maintenance", "host.quarantined", "host.retired"), _host_decided),
    **dict.fromkeys(("gpu.ecc_uncorrected", "host.changed"), _host_moment),
    **{f"maintenance.{kind}": _maintenance for kind in ("declared", "changed", "began", "removed")},
    **dict.fromkeys(("access.lost", "access.back", "access.draining"), _relay),
    "access.kept_back": _relay_kept_back,
    **{
        f"job.{state}": _job
        for state in ("queued", "starting", "running", "migrating", "succeeded", "failed", "cancelled", "lost")
    },
    **{
        f"cluster.{phase.value.lower()}": _cluster
        for phase in ClusterPhase
        if phase in (ClusterPhase.RUNNING, ClusterPhase.DEGRADED, ClusterPhase.STOPPING, ClusterPhase.STOPPED)
        or phase in (ClusterPhase.DELETING, ClusterPhase.DELETED, ClusterPhase.FINISHED, ClusterPhase.FAILED)
    },
    **dict.fromkeys(("volume.not_saved", "volume.saved_in_part", "volume.lost"), _volume),
    **dict.fromkeys(("limit.reached", "rental.budget_reached"), _budget),
    **dict.fromkeys(("limit.set", "limit.removed"), _limit_changed),
    "rental.funds_low": _funds_low,
    "account.credited": _credited,
    "rental.closed": _rental_closed,
}
"""How each kind of event is read; every other kind says nothing."""
