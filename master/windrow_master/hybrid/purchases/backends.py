"""Backends: the accounts at providers that operators connect, with sealed credentials and caps."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from windrow_master.hybrid.backends.port import Backend, Doubtful, Finding, MachineOffer, Refused, RefusedFor, Wanted
from windrow_master.hybrid.purchases.costs import MARGIN_PERCENT_MAX, check_is_capped, day_of, owed
from windrow_master.hybrid.purchases.model import BACKENDS_MAX, BackendRow, Buyer, Caps, Owed
from windrow_master.hybrid.purchases.repository import BackendRepository, BuyerRepository, PurchaseRepository
from windrow_master.identity.accounts import find_account
from windrow_master.identity.model import Principal
from windrow_master.spec import ANY_BACKEND
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_master.work_queue import WorkQueue
from windrow_proto.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    NoCapacity,
    NotFound,
    TooMany,
    Unavailable,
    WindrowError,
)
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey, seal_values
from windrow_proto.units import Microcents

PURPOSE: Final = "credentials of backend "
"""For which credentials are sealed; the backend's name follows."""
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,62}")
_NONE: Final = "There is no such backend. List them: windrow backend ls"


class Kind(Protocol):
    """A kind of backend, as backends/kinds.py declares it."""

    def read(self, settings: Mapping[str, str], secrets: Mapping[str, str]) -> object:
        """Check its fields. Raises InvalidInput."""


Open = Callable[[str, Mapping[str, str], Mapping[str, str]], Backend]
"""Makes a connection of a kind from settings and secrets; it asks nobody yet."""


class BackendService:
    """The backends of this market, and one connection to each that is used."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        seal_key: SealKey,
        kinds: Mapping[str, Kind],
        open_backend: Open,
        reachability: Callable[[], Finding],
    ) -> None:
        """reachability: whether a machine outside could reach this Master."""
        self._store, self._clock, self._seal_key, self._kinds = store, clock, seal_key, kinds
        self._open_backend, self._reachability = open_backend, reachability
        self._opened: dict[str, tuple[tuple[object, ...], Backend]] = {}
        self.queue: Final[WorkQueue[str]] = WorkQueue(clock)
        """The names of the backends to look at."""
        self.swept_ns: Final[dict[str, int]] = {}
        """By backend, when its last sweep by this Master ended."""

    async def add(
        self,
        principal: Principal,
        name: str,
        kind: str,
        settings: Mapping[str, str],
        secrets: Mapping[str, str],
        caps: Caps,
        margin_percent: int = 0,
    ) -> BackendRow:
        """Connect one. Raises InvalidInput, Conflict where the name is taken, TooMany."""
        if not _NAME.fullmatch(name):
            raise InvalidInput("name: It has 1 to 63 small letters, digits and dashes, a letter first.", subject="name")
        if kind not in self._kinds:
            raise InvalidInput(f"kind: It is one of {', '.join(sorted(self._kinds))}.", subject="kind")
        self._kinds[kind].read(settings, secrets)
        _check(caps, margin_percent)
        sealed = self._sealed(name, secrets)

        def change(uow: UnitOfWork) -> BackendRow:
            rows = uow[BackendRepository]
            if rows.get(name) is not None:
                raise Conflict(f"There is a backend {name} already. Take another name.", subject=name)
            if len(rows.all()) >= BACKENDS_MAX:
                raise TooMany(f"There are {BACKENDS_MAX} backends. Remove some: windrow backend rm NAME")
            row = BackendRow(
                name=name,
                kind=kind,
                settings=dict(settings),
                sealed=sealed,
                caps=caps,
                margin_percent=margin_percent,
                created_at_ns=uow.now_wall_ns,
            )
            rows.save(row)
            _tell(uow, principal, "added", row, f"The backend {name} was connected: {kind}")
            uow.after_commit(lambda: self.queue.add(name))
            return row

        return await self._store.write(change, name="backend.add")

    async def list(self) -> Sequence[BackendRow]:
        """All, by name."""
        return await self._store.read(lambda uow: uow[BackendRepository].all())

    async def get(self, name: str) -> BackendRow:
        """One. Raises NotFound."""
        return await self._store.read(lambda uow: find_backend(uow, name))

    async def set_caps(
        self, principal: Principal, name: str, caps: Caps, margin_percent: int | None = None
    ) -> BackendRow:
        """Replace the caps. What runs goes on: a cap that is passed already only refuses new machines. Raises NotFound,
        InvalidInput."""
        _check(caps, margin_percent or 0)

        def change(uow: UnitOfWork) -> BackendRow:
            known = find_backend(uow, name)
            margin = known.margin_percent if margin_percent is None else margin_percent
            row = replace(known, caps=caps, margin_percent=margin)
            if row.caps.currency != known.caps.currency and uow[PurchaseRepository].machines(name):
                raise Conflict(f"{name} has machines that are paid in {known.caps.currency}. End them first.")
            uow[BackendRepository].save(row)
            _tell(uow, principal, "changed", row, f"The caps of the backend {name} were changed")
            return row

        return await self._store.write(change, name="backend.cap")

    async def renew(self, principal: Principal, name: str, secrets: Mapping[str, str], market_id: str) -> BackendRow:
        """Use other credentials of the same account from now on, where they work. Raises NotFound, InvalidInput, what
        `said` makes of a refusal, Conflict where they show nothing of what lives there: that would be believed gone."""
        row = await self.get(name)
        self._kinds[row.kind].read(row.settings, secrets)
        backend = self._open_backend(row.kind, row.settings, secrets)
        try:
            shown = {machine.machine_id for machine in await backend.describe(market_id)}
        except (Refused, Doubtful) as error:
            raise said(error, name) from error
        finally:
            await backend.close()

        def change(uow: UnitOfWork) -> BackendRow:
            known = replace(find_backend(uow, name), sealed=self._sealed(name, secrets))
            bought = {machine_id for machine_id in uow[PurchaseRepository].machines(name).values() if machine_id}
            if bought and not bought & shown:
                words = f"These credentials show none of the {len(bought)} machines that were bought at {name}"
                way_out = "If they are of another account, connect that as a backend of its own: windrow backend add"
                raise Conflict(f"{words}. {way_out}", subject=name)
            uow[BackendRepository].save(known)
            _tell(uow, principal, "changed", known, f"The backend {name} has other credentials")
            uow.after_commit(lambda: self.queue.add(name))
            return known

        return await self._store.write(change, name="backend.renew")

    def _sealed(self, name: str, secrets: Mapping[str, str]) -> bytes | None:
        return seal_values(self._seal_key.public, secrets, PURPOSE + name) if secrets else None

    async def remove(self, principal: Principal, name: str) -> None:
        """Forget one and its credentials. Raises NotFound, Conflict while it has machines: nobody could end them."""

        def change(uow: UnitOfWork) -> None:
            row = find_backend(uow, name)
            if living := len(uow[PurchaseRepository].machines(name)):
                are = "1 purchase that is" if living == 1 else f"{living} purchases that are"
                said = f"{name} has {are} not over. End them first: windrow backend stop-all {name}"
                raise Conflict(said, subject=name)
            uow[BackendRepository].remove(name)
            uow[BuyerRepository].remove(backend=name)
            _tell(uow, principal, "removed", row, f"The backend {name} was removed")

        await self._store.write(change, name="backend.remove")
        self.queue.drop(name)
        self.swept_ns.pop(name, None)
        known = self._opened.pop(name, None)
        if known is not None:
            await known[1].close()

    async def allow(
        self,
        principal: Principal,
        name: str,
        account_id: str,
        per_day: Microcents | None = None,
        in_all: Microcents | None = None,
    ) -> Buyer:
        """Let the work of a project buy machines there by itself, for so much at most. Raises NotFound,
        InvalidInput."""
        if per_day is None and in_all is None:
            raise InvalidInput("Say how much it may spend there: per day or in all.", subject="per_day")

        def change(uow: UnitOfWork) -> Buyer:
            row, account = find_backend(uow, name), find_account(uow, account_id)
            if account is None:
                raise NotFound("There is no such project. List them: windrow account ls", subject=account_id[:64])
            known = uow[BuyerRepository].get(name, account.id)
            since_ns = uow.now_wall_ns if known is None else known.created_at_ns
            buyer = Buyer(backend=name, account_id=account.id, per_day=per_day, in_all=in_all, created_at_ns=since_ns)
            uow[BuyerRepository].save(buyer)
            _tell(uow, principal, "allowed", row, f"The work of {account.id} may buy machines at {name}")
            return buyer

        return await self._store.write(change, name="backend.allow")

    async def disallow(self, principal: Principal, name: str, account_id: str) -> None:
        """Let the work of a project buy nothing more there; what was bought stays. Raises NotFound."""

        def change(uow: UnitOfWork) -> None:
            row, account = find_backend(uow, name), find_account(uow, account_id)
            uow[BuyerRepository].remove(name, AccountId(account_id) if account is None else account.id)
            _tell(uow, principal, "disallowed", row, f"The work of {account_id} buys no more machines at {name}")

        await self._store.write(change, name="backend.disallow")

    async def buyers(self, name: str) -> Sequence[tuple[Buyer, Owed]]:
        """The projects that may buy there, each with what its machines cost. Raises NotFound."""

        def read(uow: UnitOfWork) -> list[tuple[Buyer, Owed]]:
            row, rows, day_ns = find_backend(uow, name), uow[PurchaseRepository], day_of(uow.now_wall_ns)
            living, found = rows.living(name), list[tuple[Buyer, Owed]]()
            for buyer in uow[BuyerRepository].of_backend(name):
                own = [one for one in living if one.account_id == buyer.account_id]
                spent = rows.spent(name, day_ns, buyer.account_id)
                found.append((buyer, owed(row, own, spent, uow.now_wall_ns)))
            return found

        return await self._store.read(read)

    async def usable(self, account_id: AccountId) -> Sequence[tuple[BackendRow, Buyer]]:
        """The backends where the work of a project may buy machines, by name, with how much it may spend."""

        def read(uow: UnitOfWork) -> list[tuple[BackendRow, Buyer]]:
            rows = uow[BackendRepository]
            found = [(rows.get(buyer.backend), buyer) for buyer in uow[BuyerRepository].of_account(account_id)]
            return [(row, buyer) for row, buyer in found if row is not None]

        return await self._store.read(read)

    async def check(self, principal: Principal, name: str) -> Sequence[Finding]:
        """Look at credentials, permissions, quota and whether a machine could reach this Master; buys nothing. The
        findings are kept. Raises NotFound, and what `said` makes of a refusal."""
        backend = self.opened(await self.get(name))
        try:
            found = (*await backend.check(), self._reachability())
        except (Refused, Doubtful) as error:
            raise said(error, name) from error

        def change(uow: UnitOfWork) -> None:
            known = find_backend(uow, name)
            uow[BackendRepository].save(replace(known, findings=found, checked_at_ns=uow.now_wall_ns))
            uow.audit(principal.actor, "backend.check", f"backend/{name}", "asked for")

        await self._store.write(change, name="backend.check")
        return found

    async def offers(self, name: str, wanted: Wanted) -> Sequence[MachineOffer]:
        """The machines that could be had now. Raises NotFound, and what `said` makes of a refusal."""
        backend = self.opened(await self.get(name))
        try:
            return await backend.offers(wanted)
        except (Refused, Doubtful) as error:
            raise said(error, name) from error

    def opened(self, row: BackendRow) -> Backend:
        """The connection to a backend, made when it is first used."""
        made_of = (row.kind, tuple(sorted(row.settings.items())), row.sealed)
        known = self._opened.get(row.name)
        if known is None or known[0] != made_of:
            secrets = {} if row.sealed is None else self._seal_key.open_values(row.sealed, PURPOSE + row.name)
            known = self._opened[row.name] = made_of, self._open_backend(row.kind, row.settings, secrets)
        return known[1]


def find_backend(uow: UnitOfWork, name: str) -> BackendRow:
    """One backend. Raises NotFound."""
    row = uow[BackendRepository].get(name)
    if row is None:
        raise NotFound(_NONE, subject=name[:64])
    return row


def find_buyer(uow: UnitOfWork, name: str, account_id: AccountId) -> Buyer:
    """The right of a project to buy there. Raises Forbidden."""
    buyer = uow[BuyerRepository].get(name, account_id)
    if buyer is None:
        raise may_not_buy(uow, name, account_id)
    return buyer


def may_not_buy(uow: UnitOfWork, name: str, account_id: AccountId) -> WindrowError:
    """The refusal of work whose project may buy nothing there. name: of a backend, or of any."""
    others = sorted(one.backend for one in uow[BuyerRepository].of_account(account_id))
    if others and uow[BackendRepository].get(name) is None:  # of none, who may use none
        said = f"There is no backend {name[:64]}. This project may use {', '.join(others)}."
        return InvalidInput(said, subject="backend")
    where, named = ("any backend", "NAME") if name == ANY_BACKEND else (name, name)
    said = f"This project may not buy at {where}. Leave backend out, or ask an operator of this market for it"
    return Forbidden(f"{said}: windrow backend allow {named} PROJECT --per-day AMOUNT", subject="backend")


def forget_buyer(uow: UnitOfWork, account_id: AccountId) -> None:
    """Forget what a project that is deleted might buy."""
    uow[BuyerRepository].remove(account_id=account_id)


def said(error: Refused | Doubtful, name: str) -> WindrowError:
    """A provider's refusal, or its silence, as an error for whoever asked."""
    if isinstance(error, Doubtful):
        return Unavailable(f"{name} does not answer: {str(error)[:300]}", subject=name)
    text = f"{name} refuses ({error.reason}): {error.said[:300]}"
    if error.reason is RefusedFor.CAPACITY:
        return NoCapacity(text, subject=name)
    return Conflict(text, subject=name)


def _check(caps: Caps, margin_percent: int) -> None:
    check_is_capped(caps)
    if not 0 <= margin_percent <= MARGIN_PERCENT_MAX:
        raise InvalidInput(f"margin_percent: It is from 0 to {MARGIN_PERCENT_MAX}.", subject="margin_percent")


def _tell(uow: UnitOfWork, principal: Principal, action: str, row: BackendRow, text: str) -> None:
    fields = {"kind": row.kind, "caps": json.dumps({k: v for k, v in _caps(row.caps).items() if v is not None})}
    uow.audit(principal.actor, f"backend.{action}", f"backend/{row.name}", "asked for", fields)
    uow.event(f"backend.{action}", (f"backend/{row.name}",), text, actor=principal.actor)


def _caps(caps: Caps) -> dict[str, object]:
    return {name: getattr(caps, name) for name in Caps.__slots__}
