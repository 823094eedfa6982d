"""Answers other packages that ask for hosts, slots and commands and hold no service of the fleet."""

from collections.abc import Sequence

from windrow_master.fleet.model import AdminState, CommandRow, Host, Slot
from windrow_master.fleet.repository import CommandRepository, HostRepository, SlotRepository
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, CommandId, HostId


def find_host(uow: UnitOfWork, host_id: HostId) -> Host | None:
    """One host, if it is here."""
    return uow[HostRepository].get(host_id)


def owner_of(uow: UnitOfWork, host_id: HostId) -> AccountId | None:
    """The account that a host belongs to; None where there is no such host."""
    host = find_host(uow, host_id)
    return host.owner_account if host is not None else None


def hosts_of(uow: UnitOfWork, account_id: AccountId) -> list[Host]:
    """The hosts of an account, without those that are retired."""
    return [one for one in uow[HostRepository].of_owner(account_id) if one.admin_state is not AdminState.RETIRED]


def slots_of(uow: UnitOfWork, host_id: HostId) -> Sequence[Slot]:
    """The slots of one host."""
    return uow[SlotRepository].of_host(host_id)


def find_command(uow: UnitOfWork, command_id: CommandId) -> CommandRow | None:
    """One command, if it is here."""
    return uow[CommandRepository].get(command_id)
