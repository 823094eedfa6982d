"""Says counts, spans and money in words, for people; programs have them whole in JSON. Pure."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

MONEY_DIGITS: Final = 4
"""Decimals of money wherever it is shown; the console shows the same."""
SEVERITIES: Final = {"page": "Urgent", "ticket": "Can wait", "info": "For information"}
"""Of alerts, as the console says them (console/src/alerts/alerts.ts); the API has the codes."""
_EXACT: Final = Context(prec=60, rounding=ROUND_HALF_UP)


def counted(count: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def state_name(code: str) -> str:
    """Of work in words, as the console says it."""
    return "Saving files" if code == "Checkpointing" else code


def severity_name(code: str) -> str:
    """In words; a code that is not known here stays."""
    return SEVERITIES.get(code, code)


def seconds_text(seconds: float | str) -> str:
    """Seconds with at most three digits that count: `1.62 s`, `3601 s`."""
    value = float(seconds)
    return f"{value:.0f} s" if value >= 100 else f"{value:.3g} s"


def money_text(amount: str, digits: int = MONEY_DIGITS) -> str:
    """An amount rounded half up to so many decimals, two at least. One below one keeps its first two digits however
    small it is: something is never shown as nothing."""
    value = Decimal(amount)
    zeros = re.match(r"-?0*\.(0*)[1-9]", f"{value:f}")
    kept = max(digits, len(zeros[1]) + 2 if zeros else 0)
    whole, _, fraction = f"{value.quantize(Decimal(1).scaleb(-kept), context=_EXACT):f}".partition(".")
    return f"{whole}.{fraction.rstrip('0').ljust(2, '0')}"


def money_or_none(amount: str | None) -> str | None:
    """The same; absent stays absent."""
    return None if amount is None else money_text(amount)
