"""Writes the changes of purchases, with what belongs into the same transaction, and tells of each."""

from collections.abc import Callable
from functools import partial
from typing import Final

from windrow_master.hybrid.purchases import costs
from windrow_master.hybrid.purchases.backends import BackendService
from windrow_master.hybrid.purchases.decide import Decision, Effect
from windrow_master.hybrid.purchases.model import NOTHING, BackendRow, Purchase, Rules, run_host
from windrow_master.hybrid.purchases.ports import Hosts
from windrow_master.hybrid.purchases.repository import PurchaseRepository
from windrow_master.hybrid.purchases.states import FINAL, State
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import NotFound

_TOLD: Final = {
    State.WANTED: "{offer} is to be bought at {backend} for {account}",
    State.DOUBTFUL: "{backend} gave no answer about {offer}: its list will tell",
    State.BOOTING: "{backend} gave a machine: {offer}, {machine}",
    State.JOINED: "The agent of {machine} has joined",
    State.DRAINING: "{machine} at {backend} takes no more work: {reason}",
    State.ENDING: "{machine} at {backend} is ended: {reason}",
    State.GONE: "{machine} at {backend} is gone",
    State.REFUSED: "{backend} refused {offer}: {reason}",
    State.NEVER_MADE: "{offer} at {backend} was not bought: {reason}",
}
"""The events of a purchase, by its new state."""


class Transitions:
    """Changes of purchases, in the caller's transaction."""

    def __init__(self, backends: BackendService, hosts: Hosts, rules: Rules) -> None:
        self._backends, self._hosts, self._rules = backends, hosts, rules
        self.listeners: Final = list[Callable[[Purchase], None]]()
        """Called on the loop after each change."""

    def changed(self, purchase: Purchase) -> None:
        """Tell the listeners of a change that is committed."""
        for listener in self.listeners:
            listener(purchase)

    def save(self, uow: UnitOfWork, before: Purchase | None, after: Purchase, actor: str = "master") -> None:
        """Write a purchase, and tell what is new about it."""
        uow[PurchaseRepository].save(after)
        if after.host_id is not None and before is not None and before.machine_id != after.machine_id:
            self._hosts.check_instance(uow, after.host_id)
        if before is not None and before.state is after.state:
            return
        uow.after_commit(lambda: self.changed(after))
        if after.state in (State.ENDING, *FINAL):
            self._hosts.revoke(uow, after)
        text = _TOLD.get(after.state)
        if text is not None:
            machine, offer = after.machine_id or "its machine", after.offer.offer_id
            words = {"backend": after.backend, "account": after.account_id, "reason": after.reason}
            subjects = (after.purchase_id, after.account_id, *((after.host_id,) if after.host_id else ()))
            told = text.format(offer=offer, machine=machine, **words)
            uow.event(f"purchase.{after.state}", subjects, told, {"offer": offer}, actor)

    def apply(self, uow: UnitOfWork, row: BackendRow, before: Purchase, decision: Decision) -> None:
        """Write a decision, and do what belongs into its transaction."""
        after, rows = decision.purchase, uow[PurchaseRepository]
        if after != before:
            self.save(uow, before, after)
        if after.host_id is not None and Effect.DRAIN_HOST in decision.effects:
            self._hosts.drain(uow, after.host_id, uow.now_wall_ns + self._rules.drain_ns, after.reason)
        if after.host_id is not None and Effect.LOSE_HOST in decision.effects:
            self._hosts.lose(uow, after.host_id, after.reason)
        if Effect.BOOK in decision.effects:
            host_id = run_host(after.purchase_id) if after.offer.is_run else after.host_id
            paid = NOTHING if host_id is None else self._hosts.paid(uow, host_id)
            rows.add_cost(costs.entry(after, rows.costs([after.purchase_id]), paid, uow.now_wall_ns))
            uow.after_commit(partial(self._forget_sweep, row.name))  # what it leaves behind goes now

    def _forget_sweep(self, name: str) -> None:
        self._backends.swept_ns.pop(name, None)


def find_purchase(uow: UnitOfWork, purchase_id: str) -> Purchase:
    found = uow[PurchaseRepository].get(purchase_id)
    if found is None:
        raise NotFound("There is no such purchase. List them: windrow purchase ls", subject=purchase_id[:64])
    return found
