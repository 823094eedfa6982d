"""Reads, sets and removes quotas, and checks requests in the transaction that grants them; quota.py decides.

Requests are one after another in the store, each after what the one before has got: together they pass no quota.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.fleet import gpus
from windrow_master.identity.model import Principal
from windrow_master.identity.people_lookup import name_of, organisation_id_of
from windrow_master.queue import nodes, quota
from windrow_master.queue.messages import HeldBelow, WaitingBelow
from windrow_master.queue.nodes import Place
from windrow_master.queue.quota import Exceeded, Quota, QuotaItem, What, amount_text, with_totals
from windrow_master.queue.repository import QuotaRepository
from windrow_master.queue.shares import ROOT
from windrow_master.spec import require
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import QuotaExceeded
from windrow_proto.ids import AccountId

TIERS: Final = (gpus.UNLISTED_CLASS, *dict.fromkeys(one.model_class for one in gpus.MODELS))
"""The tiers of GPUs that quotas may be of: models, whatever their grade."""


def tier_of(tier: str) -> str:
    """The tier for which a machine of this tier counts: `h100` for `h100/A`."""
    return tier.partition("/")[0]


def of(uow: UnitOfWork, account_id: AccountId) -> Sequence[Quota]:
    """The quotas that requests of a project count for: its own, its organisation's, the installation's."""
    path = (ROOT, organisation_id_of(uow, account_id), account_id)
    return uow[QuotaRepository].of(filter(None, path))


def used_of(uow: UnitOfWork, quotas: Sequence[Quota]) -> dict[tuple[str, What], int]:
    """How much is used of these now, by node."""
    found = dict[tuple[str, What], int]()
    for node_id, level in dict.fromkeys((one.node_id, one.level) for one in quotas):
        items = {one.item for one in quotas if one.node_id == node_id}
        if items - {QuotaItem.WAITING}:
            held = with_totals(uow.ask(HeldBelow(level, node_id)))
            found.update(((node_id, what), amount) for what, amount in held.items())
        if QuotaItem.WAITING in items:
            found[node_id, (QuotaItem.WAITING, "")] = uow.ask(WaitingBelow(level, node_id))
    return found


def check(uow: UnitOfWork, quotas: Sequence[Quota], asked: Mapping[What, int], *, may_wait: bool = False) -> None:
    """Raises QuotaExceeded where a request would pass one of these with what is used already. asked: GPUs by tier.
    may_wait: only where it would pass one with nothing used, as of a job, which waits until there is room."""
    if not quotas:
        return
    wanted = with_totals(asked)
    quotas = [one for one in quotas if wanted.get((one.item, one.tier), 0) > 0]
    found = quota.check(quotas, {}, asked)
    is_possible = found is None
    if not quotas or (is_possible and may_wait):
        return
    used = used_of(uow, quotas)
    found = found or quota.check(quotas, used, asked)
    if found is not None:
        one = found.quota
        has = used.get((one.node_id, (one.item, one.tier)), 0)
        named = replace(one, node_id=name_of(uow, one.node_id) or one.node_id)
        raise QuotaExceeded(Exceeded(named, has, found.asked).words, subject=one.node_id, is_possible=is_possible)


@dataclass(frozen=True, slots=True)
class QuotaView:
    """A quota, its node, and how much of it is used."""

    place: Place
    quota: Quota
    used: int


class QuotaService:
    """The quotas of the installation, of organisations and projects."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list(self, principal: Principal) -> Sequence[QuotaView]:
        """Those that the caller sees, by node, item and tier."""

        def read(uow: UnitOfWork) -> list[QuotaView]:
            known = {one.node_id for one in uow[QuotaRepository].list()}
            seen = nodes.seen(uow, principal, known)
            return [view for place in seen for view in _views(uow, place, uow[QuotaRepository].of([place.id]))]

        return await self._store.read(read)

    async def set(self, principal: Principal, wanted: str, item: QuotaItem, tier: str, limit: int) -> QuotaView:
        """Let this be the most of an item, of GPUs perhaps of one tier, that a node has at once; what is used already
        stays. wanted: by id or name. Raises InvalidInput, NotFound, Forbidden."""
        tier = tier_of(tier)
        is_known = not tier or tier.partition(":")[0] in TIERS
        require("tier", is_known, "a model of GPUs as `windrow gpus` lists them, such as h100, or left out for all")

        def change(uow: UnitOfWork) -> QuotaView:
            place = nodes.find(uow, principal, wanted)
            nodes.check_may_set(principal, place)
            after = Quota(node_id=place.id, level=place.level, item=item, limit=limit, tier=tier)
            before = _known(uow, place, item, tier)
            uow[QuotaRepository].save(after)
            _audit(uow, principal.actor, before, after)
            return _views(uow, place, [after])[0]

        return await self._store.write(change, name="quota.set")

    async def remove(self, principal: Principal, wanted: str, item: QuotaItem, tier: str) -> None:
        """End a quota; repeated it changes nothing. Raises NotFound, Forbidden."""

        def change(uow: UnitOfWork) -> None:
            place = nodes.find(uow, principal, wanted)
            nodes.check_may_set(principal, place)
            if (before := _known(uow, place, item, tier_of(tier))) is not None:
                uow[QuotaRepository].remove(place.id, item, before.tier)
                _audit(uow, principal.actor, before, None)

        await self._store.write(change, name="quota.remove")


def forget_account(uow: UnitOfWork, account_id: AccountId) -> None:
    """Remove the quotas of a project."""
    uow[QuotaRepository].forget(account_id)


def _views(uow: UnitOfWork, place: Place, quotas: Sequence[Quota]) -> list[QuotaView]:
    used, ordered = used_of(uow, quotas), sorted(quotas, key=lambda one: (one.item, one.tier))
    return [QuotaView(place, one, used.get((one.node_id, (one.item, one.tier)), 0)) for one in ordered]


def _known(uow: UnitOfWork, place: Place, item: QuotaItem, tier: str) -> Quota | None:
    found = uow[QuotaRepository].of([place.id])
    return next((one for one in found if (one.item, one.tier) == (item, tier)), None)


def _audit(uow: UnitOfWork, actor: str, before: Quota | None, after: Quota | None) -> None:
    """Write down who changed a quota, and how it was."""
    one = after or before
    assert one is not None
    was, now = ("none" if each is None else amount_text(each.item, each.limit) for each in (before, after))
    fields = {"item": one.item.value, "tier": one.tier, "limit": f"{was} -> {now}"}
    uow.audit(actor, "quota.set" if after else "quota.remove", one.node_id, fields=fields)
