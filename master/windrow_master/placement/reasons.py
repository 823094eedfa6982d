"""Says why work runs where it runs, and why not elsewhere, from the record of the decision. Pure.

Every number and name of a sentence stands in the record, or follows from it by the weights.
"""

from collections import Counter
from dataclasses import fields
from typing import Final

from windrow_master.placement.model import Decision, Verdict, Weights
from windrow_master.placement.plan import FITS, reweighed
from windrow_proto.errors import InvalidInput

LOSERS_MAX: Final = 3
"""Hosts that the answer compares with the winner; `--host` asks about any other."""
REASONS_MAX: Final = 4
PASSED_OVER: Final = "passed over: "
"""How what the index says of the hosts that nobody looked at begins."""
WEIGHT_MAX: Final = 1000


def here(decision: Decision) -> tuple[str, ...]:
    """The reasons for its place: the terms of the winner, of the best losers, and of those that did not fit. Of the
    hosts that the index passed over nobody knows whether they fit."""
    if decision.chosen is None or not decision.verdicts:
        return ()
    winner, weights = decision.verdicts[0], decision.weights
    terms = ", ".join(f"{term} {value} x {getattr(weights, term)}" for term, value in winner.terms.items())
    fitting = [one for one in decision.verdicts if one.score is not None]
    count = len(fitting) + decision.unkept.get(FITS, 0)
    is_part = any(str(said).startswith(PASSED_OVER) for said in decision.unkept)
    which = "that the index named" if is_part else "that fit" if count > 1 else "that fits"
    most = f"the most of {count} hosts {which}" if count > 1 else f"and is the only host {which}"
    told = [f"{winner.host_name} scores {winner.score}, {most}: {terms}."]
    if decision.others:
        told.append(f"Other members run on {', '.join(one.host_name for one in decision.others)}.")
    losers = fitting[1 + len(decision.others) :]
    told += [_compared(decision, one) for one in losers[:LOSERS_MAX]]
    refused = Counter(one.reason for one in decision.verdicts if one.reason is not None)
    refused.update({said: count for said, count in decision.unkept.items() if said != FITS})
    for said, count in refused.most_common(REASONS_MAX):
        hosts, words = f"{count} {'host' if count == 1 else 'hosts'}", str(said)
        is_index = words.startswith(PASSED_OVER)
        told.append(f"{hosts} passed over: {words.removeprefix(PASSED_OVER)}." if is_index else f"{hosts}: {words}.")
    return tuple(told)


def not_there(decision: Decision, host_id: str) -> str | None:
    """The reason why it does not run on this host; None: the record does not name it."""
    if any(one.host_id == host_id for one in (decision.chosen, *decision.others) if one is not None):
        return "It runs there."
    verdict = next((one for one in decision.verdicts if one.host_id == host_id), None)
    if verdict is None:
        return None
    if verdict.reason is not None:
        return f"{verdict.host_name} did not fit: {verdict.reason}."
    return _compared(decision, verdict)


def not_there_now(decision: Decision | None, verdict: Verdict) -> str:
    """The same from a fresh look at a host. decision: of the place that it has; None: it has none."""
    if verdict.reason is not None:
        return f"{verdict.host_name} does not fit now: {verdict.reason}."
    if decision is None or decision.chosen is None or not decision.verdicts:
        return f"It fits on {verdict.host_name} now."
    return f"It would fit on {verdict.host_name} now, too. {_compared(decision, verdict)}"


def with_weights(decision: Decision, changes: str) -> str:
    """The outcome by other weights, such as `cost=8,packing=0`. Raises InvalidInput."""
    weights = _weights(decision.weights, changes)
    ranked = reweighed(decision, weights)
    if not ranked or decision.chosen is None:
        return "The record names no host that fitted."
    best, name = ranked[0], decision.chosen.host_name
    own = next(one for one in ranked if one.host_id == decision.chosen.host_id)
    if best.host_id == own.host_id:
        return f"With {changes} {name} is the best, too: it scores {own.score}."
    return f"With {changes} {best.host_name} is the best: it scores {best.score}, and {name} {own.score}."


def _compared(decision: Decision, other: Verdict) -> str:
    """How another host that fits compares with the winner."""
    winner = decision.verdicts[0]
    less = (winner.score or 0) - (other.score or 0)
    parts = [
        f"{term} {other.terms.get(term, 0)} instead of {value}"
        for term, value in winner.terms.items()
        if other.terms.get(term, 0) != value and getattr(decision.weights, term)
    ]
    start = f"{other.host_name} scores {other.score}"
    if not less:
        return f"{start}, the same: equal hosts take turns."
    words = f"{abs(less)} {'less' if less > 0 else 'more'}: {', '.join(parts)}"
    more = "" if less > 0 else "; its members have to see each other and keep to the price" if decision.others else ""
    return f"{start}, {words}{more}."


def _weights(weights: Weights, changes: str) -> Weights:
    known = {field.name: getattr(weights, field.name) for field in fields(weights)}
    for change in changes.split(","):
        name, _, value = change.partition("=")
        is_number = value.isascii() and value.isdecimal() and len(value) <= len(str(WEIGHT_MAX))
        if name not in known or not is_number or int(value) > WEIGHT_MAX:
            raise InvalidInput(
                f"weights: {change[:64]!r} is not TERM=NUMBER, with a term among {', '.join(known)} and a number "
                f"from 0 to {WEIGHT_MAX}.",
                subject="weights",
            )
        known[name] = int(value)
    return Weights(**known)
