"""Decides what the conditions of a host keep from being offered, and merges what agent and Master found. Pure.

The table of all conditions is `windrow_proto/conditions.py`. A code that is not in it comes of an agent of another
version: it is kept and shown, and nothing is withheld for it.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from windrow_master.fleet.model import Condition
from windrow_proto.conditions import ConditionCode, Effect, Scope, find, split
from windrow_proto.wire_fields import clean_text

NAME_MAX: Final = 128
CONDITIONS_MAX: Final = 64
CLAIM: Final = "claim."
"""The prefix of the codes of findings about claims (claims/)."""
CHALLENGE: Final = "challenge."
"""The prefix of the codes that come of a challenge to a card."""
MASTERS_CODES: Final = (CLAIM, CHALLENGE, "disputed.", ConditionCode.GPU_LISTED_ELSEWHERE.value)
"""The prefixes of codes that the Master finds itself: a host that sends one is not believed."""


def unavailable_reason(uuid: str | None, conditions: Iterable[Condition], part: str | None = None) -> str | None:
    """Return why a slot is not offered, by the host's conditions; None when nothing stands against it. uuid: its
    card's; part: of a slice, its own."""
    for condition in conditions:
        if _withholds(condition.code, uuid, part):
            return condition.detail or split(condition.code)[0]
    return None


def is_faulted(uuid: str | None, conditions: Iterable[Condition], part: str | None = None) -> bool:
    """True where one of these conditions puts this GPU, or this part of it, out of order until it was verified."""
    return uuid is not None and any(is_fault(one.code) and split(one.code)[1] in (uuid, part) for one in conditions)


def is_fault(text: str) -> bool:
    """True where a condition is a fault of the GPU that it names."""
    known = find(text)
    return known is not None and known.effect is Effect.FAULT


def merged(
    codes: Iterable[str], previous: Iterable[Condition], now_ns: int, found: Mapping[str, str]
) -> tuple[Condition, ...]:
    """The conditions that the Master found itself (words by code), then those that the host says; those that were there
    before keep their moment."""
    since = {condition.code: condition.since_ns for condition in previous}
    names = (clean_text(code, NAME_MAX) for code in codes if not code.startswith(MASTERS_CODES))
    told = {code: _words(code) for code in list(dict.fromkeys(names))[:CONDITIONS_MAX]}
    return tuple(Condition(code, words, since.get(code, now_ns)) for code, words in {**found, **told}.items())


def found_by_master(previous: Iterable[Condition]) -> dict[str, str]:
    """The words, by their codes, of the conditions that the Master found itself."""
    return {condition.code: condition.detail for condition in previous if condition.code.startswith(MASTERS_CODES)}


def _withholds(text: str, uuid: str | None, part: str | None) -> bool:
    code, subject = split(text)
    known = find(code)
    if known is None:  # found by a Master of another version, it stands until the next inventory
        named = (uuid, part, "") if code.startswith(CLAIM) else (uuid, part) if code.startswith(CHALLENGE) else ()
        return uuid is not None and subject in named
    if known.effect is Effect.NONE:
        return False
    if known.scope is Scope.GPU:
        return uuid is not None and subject in (uuid, part)
    return known.scope is Scope.HOST or (known.scope is Scope.GPUS and uuid is not None)


def _words(text: str) -> str:
    known = find(text)
    return "" if known is None else known.words
