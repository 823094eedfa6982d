"""Shows a price before something is rented, and has a person confirm one that is high."""

import sys
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

from windrow.cli.cluster_text import print_plan
from windrow.cli.context import agreed
from windrow.config import confirm_above

USUAL: Final = Decimal(10)
"""Per hour: above it a person at a terminal is asked where no limit is set. Without a terminal only a limit that
somebody has set refuses, so that a default stops no script."""

Plan = dict[str, Any]


def limit() -> Decimal | None:
    """The price per hour above which to ask; None: ask nothing here."""
    own = confirm_above()
    return own if own is not None else USUAL if sys.stdin.isatty() else None


def agree_to(plan: Plan, yes: bool, copies: int = 1) -> None:
    """Has a person confirm a price above the limit. copies: how many of it may run at once. Raises InvalidInput where
    nobody can be asked."""
    most, price = limit(), plan.get("price_per_hour")
    if most is not None and price is not None and Decimal(price) * copies > most:
        money = " ".join(filter(None, (f"{Decimal(price) * copies:f}", plan.get("currency"))))
        each = f" for {copies} at once ({price} each)" if copies > 1 else ""
        agreed(yes, f"Rent for {money} per hour{each}, which is above {most:f}?")


def quoted(plan: Callable[[], Plan], yes: bool, *, is_silent: bool, copies: int = 1) -> None:
    """Shows what it will cost, and has a high price confirmed; where nobody could be asked and no limit is set, the
    plan is not even made. copies: as for `agree_to`."""
    if yes or limit() is None:
        return
    found = plan()
    if found["fits"]:
        if not is_silent:
            print_plan(found)
        agree_to(found, yes, copies)
