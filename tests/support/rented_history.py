"""A month of rentals for reports: hosts that are rented one time after another, with the ledger's transfers."""

import random
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import insert

from windrow_master.clusters.tables import clusters
from windrow_master.fleet.tables import hosts as hosts_table
from windrow_master.identity.tables import accounts, organisations
from windrow_master.market.tables import rental_lines, rentals, transfers
from windrow_master.store.unit import UnitOfWork
from windrow_proto.units import DAY, HOUR, SECOND, Microcents, charge

TIERS = ("h100/A", "h100/B", "a100/B", "l4/C", "h100:1g.10gb/A", "cpu/B")
KINDS = ("box", "service", "gang", "ray")
REGIONS = ("eu-central", "us-east", "")
PROJECTS, PROVIDERS, ORGANISATIONS = 12, 5, 3
SLOTS = (1, 1, 2, 4, 8)


@dataclass
class Made:
    """The rows by table. charged: the sum of all charges, microcents."""

    hosts: list[dict[str, Any]] = field(default_factory=list)
    clusters: list[dict[str, Any]] = field(default_factory=list)
    rentals: list[dict[str, Any]] = field(default_factory=list)
    lines: list[dict[str, Any]] = field(default_factory=list)
    transfers: list[dict[str, Any]] = field(default_factory=list)
    charged: int = 0

    def write(self, uow: UnitOfWork) -> None:
        """Put all of it into a database."""
        its = (hosts_table, self.hosts), (clusters, self.clusters), (rentals, self.rentals)
        for table, rows in (*its, (rental_lines, self.lines), (transfers, self.transfers)):
            if rows:
                uow.connection.execute(insert(table), rows)


def people(uow: UnitOfWork) -> None:
    """The projects and organisations of a history."""
    named = [{"id": f"organisation_{n}", "name": f"Organisation {n}", "created_at_ns": 0} for n in range(ORGANISATIONS)]
    uow.connection.execute(insert(organisations), named)
    for kind, count in (("renter", PROJECTS), ("provider", PROVIDERS)):
        rows = [
            {"id": f"account_{kind}{n}", "name": f"{kind} {n}", "roles": [], "created_at_ns": 0}
            | {"organisation_id": None if n % 4 == 3 else f"organisation_{n % ORGANISATIONS}"}
            for n in range(count)
        ]
        uow.connection.execute(insert(accounts), rows)


def history(*, hosts: int, first_day: int, days: int, seed: int = 1, busy: float = 0.85) -> Made:
    """Closed rentals within these days (from the epoch), one after another on each host; some span two hosts."""
    draw, made = random.Random(seed), Made()
    for number in range(hosts):
        made.hosts.append(_host(number, draw))
        at_ns, end_ns = first_day * DAY + draw.randrange(HOUR), (first_day + days) * DAY
        while True:
            ran_ns = draw.randrange(600, 20 * 3600) * SECOND + draw.randrange(SECOND)
            if at_ns + ran_ns > end_ns:
                break
            _rent(made, draw, at_ns, ran_ns, [number, *([(number + 1) % hosts] if draw.random() < 0.1 else [])])
            at_ns += int(ran_ns / busy)
    return made


def _rent(made: Made, draw: random.Random, at_ns: int, ran_ns: int, on: list[int]) -> None:
    number = len(made.rentals)
    rental_id, cluster_id = f"rental_{at_ns // 10**6:012x}{number:020x}", f"cluster_{number:032x}"
    price, fee_permille = draw.randrange(1, 40) * 10**6 + draw.randrange(1000), draw.choice((0, 50, 100, 133))
    project, tier = f"account_renter{draw.randrange(PROJECTS)}", draw.choice(TIERS)
    total = 0
    for place, host in enumerate(on):
        silent_ns = draw.choice((0, 0, 0, 90 * SECOND))
        signed_ns = max(SECOND, ran_ns - silent_ns)
        cost = charge(Microcents(price), signed_ns)
        fee, provider = cost * fee_permille // 1000, f"account_provider{host % PROVIDERS}"
        grant = {"token": number, "gpu_uuid": "", "isolation": 0}
        slots = [grant | {"slot_id": f"slot_{host}_{n}"} for n in range(draw.choice(SLOTS))]
        workload_id = f"workload_{number:028x}{place:04x}"
        made.lines.append(
            {"workload_id": workload_id, "rental_id": rental_id, "host_id": f"host_{host:04d}", "provider": provider}
            | {"price_per_hour": price, "slots": slots, "lease_from_ns": at_ns, "lease_until_ns": at_ns + ran_ns}
            | {"seen_at_ns": at_ns + ran_ns, "signed_ns": signed_ns, "receipts": 1, "end_reason": "", "charged": cost}
            | {"fee_charged": fee, "runs_from_ns": at_ns, "silent_ns": silent_ns}
        )
        paid = (("charge", f"acct:{provider}", cost - fee), ("fee", "platform:fees", fee))
        made.transfers += [
            {"transfer_id": f"transfer_{kind}{workload_id[9:]}", "debit": f"hold:{rental_id}", "credit": credit}
            | {"amount": amount, "kind": kind, "rental_id": rental_id, "at_ns": at_ns + ran_ns, "memo": ""}
            for kind, credit, amount in paid
            if amount
        ]
        total += cost
    made.charged += total
    made.rentals.append(
        {"rental_id": rental_id, "cluster_id": cluster_id, "cluster_name": f"work {number}", "renter": project}
        | {"tier": tier, "price_per_hour": price, "fee_permille": fee_permille, "simulated": False, "state": "closed"}
        | {"opened_at_ns": at_ns, "ended_at_ns": at_ns + ran_ns, "end_reason": "", "held": total, "charged": total}
    )
    made.clusters.append(
        {
            "cluster_id": cluster_id,
            "account_id": project,
            "name": f"work {number}",
            "request": {"kind": draw.choice(KINDS)},
        }
        | {"phase": "stopped", "rental_id": rental_id, "tier": tier, "price_per_hour": price}
        | {"created_at_ns": at_ns, "reason": "", "steps": [], "version": 1, "needs_login": False}
        | {"request_sha256": bytes(32), "restarts": 0}
    )


def _host(number: int, draw: random.Random) -> dict[str, Any]:
    texts = dict.fromkeys(("admin_reason", "access_id", "address", "inventory_hash", "tier"), "")
    states = {"admin_state": "active", "verify_state": "verified", "link_state": "online"}
    names = {"name": f"rack-{number}", "owner_account": f"account_provider{number % PROVIDERS}"}
    rest = {"conditions": [], "tier_reasons": [], "version": 1, "created_at_ns": 0, "link_since_ns": 0}
    is_of = {"host_id": f"host_{number:04d}", "region": draw.choice(REGIONS), "simulated": False}
    return {**texts, **states, **names, **rest, **is_of}
