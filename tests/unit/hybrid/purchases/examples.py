"""Purchases, offers and machines for these tests."""

from dataclasses import replace
from datetime import date
from typing import Any, Final

from windrow_master.hybrid.backends.port import Billing, Machine, MachineOffer, MachineState, PurchaseId
from windrow_master.hybrid.purchases.decide import Look
from windrow_master.hybrid.purchases.model import BackendRow, Caps, Purchase, Rules
from windrow_master.hybrid.purchases.states import State
from windrow_master.prices.offers import Kind
from windrow_proto.ids import AccountId
from windrow_proto.units import GIB, HOUR, MINUTE, SECOND, Bytes, parse_money

NOW: Final = 1_790_000_000 * SECOND
RULES: Final = Rules(list_lag_ns=MINUTE)
BY_SECOND: Final = Billing()
ID: Final = PurchaseId("purchase_1")


def offer(usd: str = "1.00", billing: Billing = BY_SECOND, **others: Any) -> MachineOffer:
    """A machine with one GPU."""
    values: dict[str, Any] = {
        "offer_id": "g5.xlarge/eu-central-1a/on-demand",
        "kind": Kind.ON_DEMAND,
        "gpu": "a10g",
        "gpu_count": 1,
        "cpus": 4,
        "memory_bytes": Bytes(16 * GIB),
        "region": "eu-central-1",
        "price_per_hour": parse_money(usd),
        "currency": "USD",
        "priced_on": date(2026, 11, 1),
        "billing": billing,
    }
    return MachineOffer(**values | others)


def purchase(state: State = State.BOOTING, **others: Any) -> Purchase:
    """One that was asked for at NOW, for two hours."""
    made = Purchase(
        purchase_id=ID,
        backend="aws",
        account_id=AccountId("account_1"),
        bought_by="account/operator",
        offer=offer(),
        state=state,
        state_since_ns=NOW,
        created_at_ns=NOW,
        ends_at_ns=NOW + 2 * HOUR,
        dearest_per_hour=parse_money("1.10"),
        reserved=parse_money("2.75"),
        asked_at_ns=NOW,
        machine_id="" if state in (State.WANTED, State.ASKING, State.DOUBTFUL, State.NEVER_MADE) else "i-1",
    )
    return replace(made, **others)


def machine(state: MachineState = MachineState.RUNNING, **others: Any) -> Machine:
    """Its machine, as the provider shows it."""
    made = Machine(machine_id="i-1", state=state, said=str(state), market_id="m", purchase_id=ID, launched_at_ns=NOW)
    return replace(made, **others)


def look(at_ns: int, found: Machine | None = None, *, is_busy: bool = False, is_answered: bool = True) -> Look:
    """What a list says that was asked for at this time."""
    return Look(is_answered, at_ns, found, is_busy)


def row(caps: Caps) -> BackendRow:
    """A backend with these caps."""
    return BackendRow(name="aws", kind="ec2", settings={}, caps=caps, created_at_ns=NOW)
