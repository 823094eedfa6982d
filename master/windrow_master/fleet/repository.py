"""Reads and writes hosts, slots and commands; rows go in and out as the fleet's values."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, or_, select, update

from windrow_master.fleet.model import (
    FORGOTTEN_AT_START,
    AdminState,
    Claim,
    CommandRow,
    CommandState,
    Condition,
    Flaps,
    Grant,
    Host,
    LinkState,
    Measurement,
    ProofMark,
    ProofOutcome,
    Slot,
    SlotState,
    VerifyState,
)
from windrow_master.fleet.tables import commands, gpu_claims, grants, hosts, slots
from windrow_master.store.cache import cache_of
from windrow_master.store.prepared import SQLITE, ByKey, Found, Made, few, flat, is_one_of_few, page, settable
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId, BootId, ClusterId, CommandId, GpuUuid, HostId, SlotId
from windrow_proto.model import CommandKind, Inventory, Isolation
from windrow_proto.wire_host import decode_inventory, encode_inventory

INVENTORIES_CACHED = 4_096
"""Parsed inventories kept by their bytes: lists of hosts are read far more often than inventories change."""

# Made once: building a statement costs more than running it, and these run for every host, slot and command.
_ADD_HOST: Final = Made(insert(hosts), hosts.c.keys())
_HOSTS: Final = ByKey(
    select(hosts), hosts.c.host_id, lambda row: _host(row), attrgetter("host_id"), attrgetter("host_id")
)
_ALL_HOSTS: Final = Found(select(hosts).order_by(hosts.c.host_id), lambda row: _host(row))
_SAVE_HOST: Final = Made(
    update(hosts).where(hosts.c.host_id == bindparam("was_id"), hosts.c.version == bindparam("was_version")),
    settable(hosts),
)
_LOCK_HOSTS: Final = Made(
    select(hosts.c.host_id)
    .where(is_one_of_few(hosts.c.host_id))
    .order_by(hosts.c.host_id)
    .with_for_update(key_share=True)
)
_ADD_SLOT: Final = Made(insert(slots), slots.c.keys())
_SLOTS: Final = ByKey(select(slots), slots.c.slot_id, lambda row: _slot(row), attrgetter("slot_id"))
_SLOTS_OF_HOST: Final = ByKey(
    select(slots), slots.c.host_id, lambda row: _slot(row), attrgetter("host_id"), attrgetter("slot_id"), _SLOTS
)
_ALL_SLOTS: Final = Found(select(slots).order_by(slots.c.slot_id), lambda row: _slot(row))
_SLOTS_OF_HOLDER: Final = Found(
    select(slots).where(slots.c.holder == bindparam("wanted")), lambda row: _slot(row), attrgetter("slot_id")
)
_EXPIRED: Final = Found(
    select(slots).where(slots.c.hold_expires_ns <= bindparam("now_ns")),
    lambda row: _slot(row),
    attrgetter("slot_id"),
)
_SWAP: Final = update(slots).where(
    slots.c.slot_id == bindparam("was_id"),
    slots.c.host_id == bindparam("was_host"),
    slots.c.state == bindparam("was_state"),
    slots.c.token == bindparam("was_token"),
    slots.c.holder.is_not_distinct_from(bindparam("was_holder")),
    slots.c.unavailable.is_not_distinct_from(bindparam("was_unavailable")),
)
_SWAP_SLOT: Final = Made(_SWAP, settable(slots))
_HELD: Final = "Somebody else holds the slot, or has held it with this token."
_SWAP_KNOWN: Final = Made(_SWAP, settable(slots), is_late=True, refused=_HELD)
"""The same for a row that the transaction has read as it is expected to be."""
_CLAIMS_OF_HOST: Final = Found(
    select(gpu_claims).where(gpu_claims.c.host_id == bindparam("wanted")),
    lambda row: Claim(**row),
    attrgetter("uuid"),
)
_CLAIMS_OF_CARD: Final = Found(
    select(gpu_claims).where(or_(gpu_claims.c.uuid == bindparam("uuid"), gpu_claims.c.serial == bindparam("serial"))),
    lambda row: Claim(**row),
    attrgetter("host_id", "uuid"),
)
_ADD_CLAIM: Final = Made(insert(gpu_claims), gpu_claims.c.keys())
_DROP_CLAIM: Final = Made(
    delete(gpu_claims).where(gpu_claims.c.host_id == bindparam("was_host"), gpu_claims.c.uuid == bindparam("was_uuid"))
)
_ADD_GRANT: Final = Made(insert(grants), grants.c.keys(), is_late=True, refused=_HELD)
_END_GRANT: Final = Made(
    update(grants)
    .where(grants.c.slot_id == bindparam("was_id"), grants.c.ended_at_ns.is_(None))
    .values(ended_at_ns=bindparam("now_ns"))
)
_ADD_COMMAND: Final = Made(insert(commands), commands.c.keys(), is_late=True)
_GET_COMMAND: Final = Found(
    select(commands).where(commands.c.command_id == bindparam("wanted")), lambda row: _command(row)
)
_SAVE_COMMAND: Final = Made(update(commands).where(commands.c.command_id == bindparam("was_id")), settable(commands))
_OPEN_OF_HOST: Final = Found(
    select(commands).where(commands.c.host_id == bindparam("wanted"), commands.c.done_at_ns.is_(None)),
    lambda row: _command(row),
    attrgetter("command_id"),
)
_OPEN: Final = Found(
    select(commands).where(commands.c.done_at_ns.is_(None)),
    lambda row: _command(row),
    attrgetter("command_id"),
)


@cache  # one for each set of states that is ever asked for: there is one
def _sent_command(before: tuple[CommandState, ...]) -> Made:
    is_one = or_(*(commands.c.state == state.value for state in before))
    sent = update(commands).where(commands.c.command_id == bindparam("was_id"), is_one)
    return Made(sent.values(state=CommandState.SENT.value, sent_at_ns=bindparam("now_ns")))


@lru_cache(maxsize=INVENTORIES_CACHED)
def _inventory(data: bytes) -> Inventory:
    return decode_inventory(data)


class HostRepository(Repository):
    """The hosts."""

    def add(self, host: Host) -> None:
        """Add a host; its id must be new."""
        _ADD_HOST.run(self._connection, _host_values(host))

    def get(self, host_id: HostId) -> Host | None:
        """One host."""
        return _HOSTS.one(self._connection, host_id)

    def lock(self, host_ids: Iterable[HostId]) -> None:
        """Let nobody else grant anything of these hosts until this transaction ends, whoever believes to lead."""
        if self._connection.dialect.name == SQLITE:  # there one writes at a time
            return
        cache = cache_of(self._connection)
        locked = set[str]() if cache is None else cache.locked
        for wanted in few(sorted(set(host_ids) - locked)):
            _LOCK_HOSTS.rows(self._connection, wanted)
            locked.update(wanted.values())

    def list_all(self) -> Sequence[Host]:
        """Every host, retired ones too, in the order of their joining."""
        return _ALL_HOSTS.readable(self._connection)

    def some(self, host_ids: Sequence[HostId]) -> Sequence[Host]:
        """Those of these hosts that are there and can be read."""
        return [host for found in _HOSTS.some(self._connection, host_ids).values() for host in found]

    def of_owner(self, account_id: AccountId) -> Sequence[Host]:
        """The hosts of one account."""
        query = select(hosts).where(hosts.c.owner_account == account_id).order_by(hosts.c.host_id)
        return [_host(row._mapping) for row in self._connection.execute(query)]

    def save(self, host: Host) -> bool:
        """Write a host that was read at `host.version - 1`; False if somebody changed it since."""
        was = {"was_id": host.host_id, "was_version": host.version - 1}
        return _SAVE_HOST.run(self._connection, _host_values(host) | was) == 1

    def not_heard(self, now_ns: int) -> int:
        """Write down of every host that it was not heard yet: a new term has begun. Returns of how many."""
        unknown = {"link_state": LinkState.UNKNOWN, "link_since_ns": now_ns, "version": hosts.c.version + 1}
        forgotten = update(hosts).where(hosts.c.link_state.in_(FORGOTTEN_AT_START))
        return self._connection.execute(forgotten.values(**unknown)).rowcount

    def retired_ids(self) -> frozenset[HostId]:
        """Hosts that must not connect."""
        banned = (AdminState.RETIRED, AdminState.QUARANTINED)
        query = select(hosts.c.host_id).where(hosts.c.admin_state.in_(banned))
        return frozenset(HostId(row.host_id) for row in self._connection.execute(query))


def _host_values(host: Host) -> dict[str, Any]:
    values = {column.name: getattr(host, column.name) for column in hosts.c if column.name != "flaps_at_ns"}
    values["inventory"] = None if host.inventory is None else encode_inventory(host.inventory)
    values["conditions"] = [flat(condition) for condition in host.conditions]
    values["tier_reasons"] = list(host.tier_reasons)
    values["labels"] = list(host.labels)
    values["bandwidth"] = None if host.bandwidth is None else flat(host.bandwidth)
    values["proof"] = None if host.proof is None else flat(host.proof)
    values |= {"flaps": host.flaps.count, "flaps_at_ns": host.flaps.at_ns}
    return values


def _measurement(kept: Mapping[str, Any]) -> Measurement:
    relays = {access_id: tuple(figures) for access_id, figures in kept.get("relays", {}).items()}
    return Measurement(**{**kept, "relays": relays})


def _host(row: Mapping[Any, Any]) -> Host:
    values = dict(row)
    values["admin_state"] = AdminState(values["admin_state"])
    values["verify_state"] = VerifyState(values["verify_state"])
    values["link_state"] = LinkState(values["link_state"])
    values["boot_id"] = None if values["boot_id"] is None else BootId(bytes(values["boot_id"]))
    values["inventory"] = None if values["inventory"] is None else _inventory(bytes(values["inventory"]))
    values["conditions"] = tuple(Condition(**condition) for condition in values["conditions"])
    values["tier_reasons"] = tuple(values["tier_reasons"])
    values["labels"] = tuple(values["labels"] or ())
    values["bandwidth"] = None if values["bandwidth"] is None else _measurement(values["bandwidth"])
    values["proof"] = None if values["proof"] is None else _proof(values["proof"])
    values["flaps"] = Flaps(values["flaps"], values.pop("flaps_at_ns"))
    return Host(**values)


def _proof(kept: Mapping[str, Any]) -> ProofMark:
    return ProofMark(kept["at_ns"], ProofOutcome(kept["outcome"]), kept["words"])


class SlotRepository(Repository):
    """The slots. Holders change only by compare-and-set: the row is written only if it still is what was read.

    Each holding is a row of `grants`, too, whose keys are the database's own guard: one open holding per slot, and no
    token twice.
    """

    def add(self, slot: Slot) -> None:
        """Add a slot; its id must be new."""
        _ADD_SLOT.run(self._connection, _slot_values(slot))

    def get(self, slot_id: SlotId) -> Slot | None:
        """One slot."""
        return _SLOTS.one(self._connection, slot_id)

    def of_host(self, host_id: HostId) -> Sequence[Slot]:
        """The slots of one host."""
        return self.of_hosts([host_id])

    def of_hosts(self, host_ids: Sequence[HostId]) -> Sequence[Slot]:
        """The slots of these hosts, those of one host in the order of their ids."""
        return [slot for slots in _SLOTS_OF_HOST.some(self._connection, host_ids).values() for slot in slots]

    def of_holder(self, cluster_id: ClusterId) -> Sequence[Slot]:
        """The slots one cluster holds."""
        return _SLOTS_OF_HOLDER.all(self._connection, {"wanted": cluster_id})

    def list_all(self) -> Sequence[Slot]:
        """Every slot."""
        return _ALL_SLOTS.readable(self._connection)

    def expired(self, now_ns: int) -> Sequence[Slot]:
        """Reservations whose time is over."""
        return _EXPIRED.readable(self._connection, {"now_ns": now_ns})

    def swap(self, before: Slot, after: Slot) -> bool:
        """Write `after` if the row's state, token, holder and offer are still those of `before`; False otherwise.

        Raises Conflict, now or when that is sent, where somebody else holds the slot, or had its token, although the
        row did not say so.
        """
        was = {
            "was_id": before.slot_id,
            "was_host": before.host_id,
            "was_state": before.state,
            "was_token": before.token,
            "was_holder": before.holder,
            "was_unavailable": before.unavailable,
        }
        known, beside = (
            _SLOTS.known(self._connection, before.slot_id),
            _SLOTS_OF_HOST.known(self._connection, before.host_id),
        )
        is_known = known is not None and list(map(_compared, known)) == [_compared(before)]
        if (_SWAP_KNOWN if is_known else _SWAP_SLOT).run(self._connection, _slot_values(after) | was) != 1:
            return False
        if is_known:
            _SLOTS.note(self._connection, after.slot_id, [after])
        if is_known and beside is not None and after.host_id == before.host_id:
            now = [after if one.slot_id == after.slot_id else one for one in beside]
            _SLOTS_OF_HOST.note(self._connection, after.host_id, now)
        if before.holder is not None and after.holder is None:
            _END_GRANT.run(self._connection, {"was_id": after.slot_id, "now_ns": after.changed_at_ns})
        elif before.holder is None and after.holder is not None:
            grant = Grant(after.slot_id, after.token, after.holder, after.changed_at_ns)
            _ADD_GRANT.run(self._connection, flat(grant))
        return True

    def grants(self, slot_id: SlotId) -> Sequence[Grant]:
        """Every holding of a slot, the first one first."""
        query = select(grants).where(grants.c.slot_id == slot_id).order_by(grants.c.token)
        return [Grant(**row._mapping) for row in self._connection.execute(query)]


def _compared(slot: Slot) -> tuple[object, ...]:
    """Return the values that must not have changed when a slot is written."""
    return slot.host_id, slot.state, slot.token, slot.holder, slot.unavailable


def _slot_values(slot: Slot) -> dict[str, Any]:
    values = flat(slot)
    values["tier_reasons"] = list(slot.tier_reasons)
    values["isolation"] = slot.isolation.name.lower()
    values["card_uuid"], values["profile"] = slot.card, slot.profile or None  # `card` itself is no column
    return values


def _slot(row: Mapping[Any, Any]) -> Slot:
    values = dict(row)
    values["state"] = SlotState(values["state"])
    values["tier_reasons"] = tuple(values["tier_reasons"])
    values["isolation"] = Isolation[values["isolation"].upper()]
    values["card"], values["profile"] = values.pop("card_uuid"), values["profile"] or ""
    return Slot(**values)


class ClaimRepository(Repository):
    """The cards that each host claims to have."""

    def of_host(self, host_id: HostId) -> Sequence[Claim]:
        """Return the claims of one host."""
        return _CLAIMS_OF_HOST.all(self._connection, {"wanted": host_id})

    def of_card(self, uuid: GpuUuid, serial: str | None) -> Sequence[Claim]:
        """Return the claims of a card by this UUID, or by this serial number where there is one."""
        return _CLAIMS_OF_CARD.all(self._connection, {"uuid": uuid, "serial": serial})

    def add(self, claim: Claim) -> None:
        """A host claims a card that it did not claim."""
        _ADD_CLAIM.run(self._connection, flat(claim))

    def drop(self, claim: Claim) -> None:
        """A host claims a card no more."""
        _DROP_CLAIM.run(self._connection, {"was_host": claim.host_id, "was_uuid": claim.uuid})

    def rivals(self) -> frozenset[HostId]:
        """The hosts that claim a card which another claims, too: two walks along an index."""
        found: set[HostId] = set()
        for column in (gpu_claims.c.uuid, gpu_claims.c.serial):
            several = select(column).where(column.is_not(None)).group_by(column).having(func.count() > 1)
            query = select(gpu_claims.c.host_id).where(column.in_(several)).distinct()
            found |= {HostId(row.host_id) for row in self._connection.execute(query)}
        return frozenset(found)


class CommandRepository(Repository):
    """The commands; the open ones are the outbox."""

    def add(self, command: CommandRow) -> None:
        """Add a command; its id must be new."""
        _ADD_COMMAND.run(self._connection, _command_values(command))

    def get(self, command_id: CommandId) -> CommandRow | None:
        """One command."""
        return _GET_COMMAND.one(self._connection, {"wanted": command_id})

    def save(self, command: CommandRow) -> None:
        """Write a command that was read in this transaction."""
        _SAVE_COMMAND.run(self._connection, _command_values(command) | {"was_id": command.command_id})

    def sent(self, command_ids: Sequence[CommandId], before: Sequence[CommandState], now_ns: int) -> None:
        """Write that these were sent, as far as they are in one of the states `before`."""
        many = [{"was_id": command_id, "now_ns": now_ns} for command_id in command_ids]
        _sent_command(tuple(before)).run_all(self._connection, many)

    def open_of_host(self, host_id: HostId) -> Sequence[CommandRow]:
        """Return the open commands of one host, oldest first."""
        return _OPEN_OF_HOST.all(self._connection, {"wanted": host_id})

    def open_all(self) -> Sequence[CommandRow]:
        """Return the open commands of all hosts, oldest first."""
        return _OPEN.readable(self._connection)

    def since(self, host_id: HostId, kind: CommandKind, since_ns: int) -> Sequence[CommandRow]:
        """Those of one kind that one host was given after this wall time, oldest first."""
        mine = commands.c.host_id == host_id, commands.c.kind == int(kind)
        query = select(commands).where(*mine, commands.c.created_at_ns > since_ns).order_by(commands.c.command_id)
        return [_command(row._mapping) for row in self._connection.execute(query)]

    def list(self, host_id: HostId | None = None, before: str | None = None, limit: int = 100) -> Sequence[CommandRow]:
        """The newest commands, of one host or of all; `before` is the last id of the previous page."""
        query = select(commands).order_by(commands.c.command_id.desc())
        if host_id is not None:
            query = query.where(commands.c.host_id == host_id)
        if before is not None:
            query = query.where(commands.c.command_id < before)
        return page(self._connection, query, _command, limit)


def _command_values(command: CommandRow) -> dict[str, Any]:
    values = flat(command)
    values["kind"] = int(command.kind)
    values["result"] = dict(command.result)
    return values


def _command(row: Mapping[Any, Any]) -> CommandRow:
    values = dict(row)
    values["kind"] = CommandKind(values["kind"])
    values["state"] = CommandState(values["state"])
    values["body"] = bytes(values["body"])
    return CommandRow(**values)
