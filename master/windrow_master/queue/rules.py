"""Reads, sets and removes the rules of shares, and tells the queue; makes the tree of shares from these rows.

The tree of a leaf is its project, its organisation, if it has one, and the installation.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Final

from windrow_master.identity.accounts import find_account
from windrow_master.identity.model import AccountState, Principal, Role
from windrow_master.identity.people_lookup import organisation_id_of
from windrow_master.queue import nodes
from windrow_master.queue.model import NOTHING, PriorityClass
from windrow_master.queue.nodes import ORGANISATION_PREFIX, Place
from windrow_master.queue.quota import NodeLevel
from windrow_master.queue.quotas import QuotaService
from windrow_master.queue.repository import RuleRepository
from windrow_master.queue.service import QueueService
from windrow_master.queue.shares import ROOT, WHOLE, Node, Rank, Rule, Shares, Standing
from windrow_master.spec import require
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden
from windrow_proto.ids import AccountId
from windrow_proto.ports import Clock

WEIGHT_MAX: Final = 1_000_000


def nodes_of(uow: UnitOfWork, node_ids: Iterable[str]) -> list[Node]:
    """The nodes of the tree for these projects and organisations with their rules, parents first; none for a project
    that is deleted, or was never there."""
    rules, found = {one.node_id: one for one in uow[RuleRepository].list()}, dict[str, Node]()
    for node_id in node_ids:
        account = None if node_id.startswith(ORGANISATION_PREFIX) else find_account(uow, AccountId(node_id))
        path = [node_id]
        if account is not None and account.organisation_id is not None:
            path = [account.organisation_id, account.id]
        is_gone = account is None or account.state is AccountState.DELETED
        if is_gone and not node_id.startswith(ORGANISATION_PREFIX):
            continue
        for one, parent in zip(path, [ROOT, *path], strict=False):
            found.setdefault(one, rules.get(one, Rule(node_id=one)).node(parent))
    return list(found.values())


def rule_of(uow: UnitOfWork, node_id: str) -> Rule | None:
    """The rules of a node as people set them; None: nobody has."""
    return uow[RuleRepository].get(node_id)


def may_use_class(uow: UnitOfWork, account_id: AccountId, priority_class: PriorityClass) -> bool:
    """True if entries of a project may have this class: urgent is a grant to it, or to its organisation."""
    if priority_class is not PriorityClass.URGENT:
        return True
    rules = (uow[RuleRepository].get(one) for one in (account_id, organisation_id_of(uow, account_id)) if one)
    return any(rule is not None and rule.may_use_urgent for rule in rules)


@dataclass(frozen=True, slots=True)
class ShareView:
    """A node, its rules, and how it stands. standing: None where nothing of it waits or runs. rank: among those beside
    it, from 1: the first is served first."""

    place: Place
    rule: Rule
    standing: Standing | None
    rank: int | None


class ShareService:
    """The shares of organisations and projects. quotas: those of the same nodes."""

    def __init__(self, store: Store, clock: Clock, queue: QueueService) -> None:
        self._store, self._clock, self._queue, self.quotas = store, clock, queue, QuotaService(store)

    async def list(self, principal: Principal) -> Sequence[ShareView]:
        """Those that the caller sees, each behind the one above it: for operators and auditors all that have rules or
        of which something waits or runs."""
        known = self._queue.shares.ids()

        def read(uow: UnitOfWork) -> list[tuple[Place, Rule]]:
            rules = {one.node_id: one for one in uow[RuleRepository].list()}
            found = nodes.seen(uow, principal, {*known, *rules})
            return [(one, rules.get(one.id, _default(one.id))) for one in found]

        return self._views(await self._store.read(read))

    async def get(self, principal: Principal, wanted: str) -> ShareView:
        """One node's, by its id or name. Raises NotFound."""

        def read(uow: UnitOfWork) -> tuple[Place, Rule]:
            place = nodes.find(uow, principal, wanted)
            return place, uow[RuleRepository].get(place.id) or _default(place.id)

        return self._views([await self._store.read(read)])[0]

    async def set(self, principal: Principal, wanted: str, rule: Rule) -> ShareView:
        """Let these be the rules of a node, in place of those that it has. rule: its node_id is not looked at. Raises
        InvalidInput where they do not go with those above, beside and below it; NotFound, Forbidden."""
        return await self._changed(principal, wanted, rule)

    async def remove(self, principal: Principal, wanted: str) -> None:
        """Let a node be as if nobody had set anything. Raises what `set` does: what is given on below it stays."""
        await self._changed(principal, wanted, None)

    def left(self, uow: UnitOfWork, account_id: AccountId) -> None:
        """A project was deleted, or has another organisation: the share that its organisation gave it ends."""
        if (before := uow[RuleRepository].get(account_id)) is not None:
            uow[RuleRepository].remove(account_id)
            _audit(uow, "master", before, Rule(node_id=account_id))
        after = nodes_of(uow, [account_id])
        uow.after_commit(lambda: self._queue.nodes_changed(after, () if after else (account_id,)))

    # --- inside ------------------------------------------------------------------------------------------------------

    async def _changed(self, principal: Principal, wanted: str, rule: Rule | None) -> ShareView:
        def change(uow: UnitOfWork) -> tuple[Place, Rule]:
            place = nodes.find(uow, principal, wanted)
            nodes.check_may_set(principal, place)
            said = "an organisation or a project: the installation is all of itself. Limits of it are quotas"
            require("share", place.level is not NodeLevel.INSTALLATION, said)
            before = uow[RuleRepository].get(place.id) or Rule(node_id=place.id)
            values = {} if rule is None else asdict(rule)
            after = Rule(**values | {"node_id": place.id})
            if after.may_use_urgent > before.may_use_urgent and Role.OPERATOR not in principal.roles:
                raise Forbidden("Operators grant the class urgent.", subject=place.id)
            _check(uow, place, after)
            if rule is None:
                uow[RuleRepository].remove(place.id)
            else:
                uow[RuleRepository].save(after)
            _audit(uow, principal.actor, before, after)
            changed = nodes_of(uow, [place.id])
            uow.after_commit(lambda: self._queue.nodes_changed(changed))
            return place, after

        return self._views([await self._store.write(change, name="fair_share.set")])[0]

    def _views(self, found: Sequence[tuple[Place, Rule]]) -> Sequence[ShareView]:
        shares, now_ns, ranks = self._queue.shares, self._clock.wall_ns(), dict[str, list[Rank]]()
        views = list[ShareView]()
        for place, rule in found:
            standing = shares.standing(place.id, now_ns) if place.id in shares else None
            if place.parent not in ranks:
                ranks[place.parent] = sorted(shares.rank(one, now_ns) for one in shares.children(place.parent))
            rank = None if standing is None else bisect_left(ranks[place.parent], standing.rank) + 1
            views.append(ShareView(place, rule, standing, rank if place.parent else None))
        return views


def _default(node_id: str) -> Rule:
    """The rules of a node for which nobody has set any."""
    return Rule(node_id=node_id, guarantee=WHOLE if node_id == ROOT else 0)


def _check(uow: UnitOfWork, place: Place, rule: Rule) -> None:
    """Raises InvalidInput, with names, where these rules do not go with those above, beside and below the node."""
    require("weight", rule.weight <= WEIGHT_MAX, f"at most {WEIGHT_MAX}")
    above = nodes.named(uow, place.parent)
    is_top = above is None or above.level is NodeLevel.INSTALLATION
    names = {place.id: place.words, place.parent: ROOT if above is None or is_top else above.words}
    shares = Shares(NOTHING)
    for one in nodes_of(uow, [*(one.node_id for one in uow[RuleRepository].list()), place.id]):
        if one.node_id in names or one.parent in names:
            parent = one.parent or ROOT
            called = names.get(one.node_id, one.node_id), names.get(parent, parent)
            shares.take(replace(one, node_id=called[0], parent=called[1]))
    shares.put(replace(rule.node(names[place.parent]), node_id=place.words))


def _audit(uow: UnitOfWork, actor: str, before: Rule, after: Rule) -> None:
    """Write down who changed which rules, and how they were."""
    was, now = ({name: str(value) for name, value in asdict(one).items()} for one in (before, after))
    fields = {name: f"{was[name]} -> {now[name]}" for name in now if was[name] != now[name]}
    uow.audit(actor, "fair_share.set", after.node_id, fields=fields)
