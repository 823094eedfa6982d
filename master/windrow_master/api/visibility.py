"""Decides which records a caller may see: a record that concerns others does not exist for the caller.

Hosts, Accesses, slots and tiers are the market's shop window and open to everyone who is signed in. Accounts, clusters,
jobs, workloads, rentals, operations, commands, tokens and sessions are their owner's. What happens on a host is also
its owner's to see. Operators and auditors see everything. Who visits a cluster or job that is shared
asks as its owner (auth.py).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from windrow_master.api.services import Services
from windrow_master.clusters import lookup as clusters
from windrow_master.fleet.lookup import find_command, owner_of
from windrow_master.fleet.model import CommandRow
from windrow_master.identity.accounts import owner_of_token
from windrow_master.identity.model import Principal, Role
from windrow_master.jobs import service as jobs
from windrow_master.jobs.model import JobId
from windrow_master.market.lookup import renter_of
from windrow_master.market.model import RentalId
from windrow_master.store.model import EventRow
from windrow_master.store.unit import UnitOfWork
from windrow_master.watch.service import is_told
from windrow_proto.errors import NotFound
from windrow_proto.ids import AccountId, ClusterId, CommandId, HostId, OperationId, TokenId, WorkloadId

OVERSEERS: Final = frozenset({Role.OPERATOR, Role.AUDITOR})
PRIVATE: Final = frozenset(
    {
        *("account", "alert", "cluster", "command", "job", "jointoken", "operation"),
        *("rental", "receipt", "session", "token", "workload"),
        *("invitation", "organisation", "mail", "passwordlink", "share", "user"),
        *("channel", "delivery", "device", "service"),
    }
)
"""Kinds of ids, as they are minted, that not everybody may look at."""
LOOKED_MAX: Final = 1_000
"""Rows that one request for a list looks at, of which few may be its caller's; the next one goes on from there."""


def oversees(principal: Principal) -> bool:
    """Return whether everything is theirs to see."""
    return bool(principal.roles & OVERSEERS)


def sees_subject(uow: UnitOfWork, principal: Principal, subject: str) -> bool:
    """Return whether they may look at what this id names; False too for what there is not."""
    return oversees(principal) or account_sees_subject(uow, principal.account_id, subject)


def account_sees_subject(uow: UnitOfWork, account_id: AccountId, subject: str) -> bool:
    """Return the same for a plain member of this account."""
    kind = subject.partition("_")[0]
    if kind not in PRIVATE:
        return True
    if kind == "alert":
        return is_told(uow, account_id, subject)
    if kind == "command":
        command = find_command(uow, CommandId(subject))
        return command is not None and _account_sees_command(uow, account_id, command)
    return _owner(uow, kind, subject) == account_id


def _owner(uow: UnitOfWork, kind: str, subject: str) -> AccountId | None:
    match kind:
        case "account":
            return AccountId(subject)
        case "cluster":
            return clusters.owner_of(uow, ClusterId(subject))
        case "workload":
            return clusters.owner_of_workload(uow, WorkloadId(subject))
        case "job":
            return jobs.owner_of(uow, JobId(subject))
        case "rental" | "receipt":
            return renter_of(uow, RentalId("rental_" + subject.partition("_")[2]))
        case "token" | "jointoken":
            return owner_of_token(uow, TokenId(subject))
        case "operation":
            operation = uow.operations.get(OperationId(subject))
            return operation.account_id if operation is not None else None
        case _:
            return None


def _owns_host(uow: UnitOfWork, account_id: AccountId, host_id: str) -> bool:
    return owner_of(uow, HostId(host_id)) == account_id


def sees_command(uow: UnitOfWork, principal: Principal, command: CommandRow) -> bool:
    """Return whether they may look at this command: it went to their host, or works for their cluster."""
    return oversees(principal) or _account_sees_command(uow, principal.account_id, command)


def _account_sees_command(uow: UnitOfWork, account_id: AccountId, command: CommandRow) -> bool:
    is_theirs = _owner(uow, command.subject.partition("_")[0], command.subject) == account_id
    return is_theirs or _owns_host(uow, account_id, command.host_id)


def sees_event(uow: UnitOfWork, principal: Principal, subjects: Iterable[str]) -> bool:
    """Return whether they may be told of an event about these."""
    return oversees(principal) or account_sees_event(uow, principal.account_id, subjects)


def account_sees_event(uow: UnitOfWork, account_id: str, subjects: Iterable[str]) -> bool:
    """Return whether an account may be told of an event about these: all of them are its own or public, or it was on
    its host."""
    named, own = tuple(subjects), AccountId(account_id)
    return all(account_sees_subject(uow, own, subject) for subject in named) or any(
        _owns_host(uow, own, subject) for subject in named if subject.startswith("host_")
    )


def may_see_event(uow: UnitOfWork, principal: Principal, row: EventRow) -> bool:
    """Return whether they may be told of this event."""
    return oversees(principal) or sees_event(uow, principal, row.subjects)


def seen_events(uow: UnitOfWork, principal: Principal, rows: Sequence[EventRow]) -> list[EventRow]:
    """Those of the events that they may be told of."""
    return [row for row in rows if may_see_event(uow, principal, row)]


def own_host(services: Services, principal: Principal, host_id: str) -> HostId:
    """The host, if they may decide about it: an operator about all, a provider about its own. Raises NotFound."""
    entry = services.fleet.entry(HostId(host_id))
    if Role.OPERATOR not in principal.roles and entry.host.owner_account != principal.account_id:
        raise NotFound("There is no such host. List hosts: windrow host ls", subject=host_id[:64])
    return entry.host.host_id
