"""Encodes a placement decision as bytes and decodes it: canonical JSON, compressed, so that equal decisions are
equal bytes. Pure.

A record is at most RECORD_MAX bytes: where it is more, the last of its hosts are counted and not named."""

import json
import zlib
from dataclasses import fields, replace
from functools import cache
from typing import Any, Final

from windrow_master.placement.model import Chosen, Decision, Request, Runtime, Verdict, Weights

RECORD_MAX: Final = 4096
UNKEPT_MAX: Final = 16
"""What was said of hosts without their names: so many sayings, the others together."""
OTHERS: Final = "other reasons"
ALSO_CHOSEN: Final = "it runs other members"


def record_bytes(decision: Decision) -> bytes:
    """The record as stored; keys sorted, no spaces, UTF-8; compressed, since hosts say much the same of themselves."""
    decision = replace(decision, unkept=_most(decision.unkept))
    while len(data := _bytes(decision)) > RECORD_MAX and decision.verdicts:
        decision = _shorter(decision)
    return data


def _bytes(decision: Decision) -> bytes:
    return zlib.compress(_JSON.encode(decision).encode(), 9)


def _named(value: Any) -> dict[str, Any]:
    """One value of the record by its fields without those that are as by default; those in it in their turn."""
    return {name: found for name, default in _defaults(value.__class__) if (found := getattr(value, name)) != default}


@cache
def _defaults(kind: Any) -> tuple[tuple[str, Any], ...]:
    return tuple((one.name, one.default) for one in fields(kind))


_JSON: Final = json.JSONEncoder(
    default=_named, sort_keys=True, separators=(",", ":"), ensure_ascii=False, check_circular=False
)


def _most(unkept: Any) -> dict[str, int]:
    said = sorted(unkept.items(), key=lambda one: (one[0] == OTHERS, -one[1], one[0]))
    rest = sum(count for _, count in said[UNKEPT_MAX:])
    return dict(said[:UNKEPT_MAX]) | ({OTHERS: rest} if rest else {})


def _shorter(decision: Decision) -> Decision:
    """Without the names of the last hosts: first of those that lost, then of the other members."""
    members = 1 + len(decision.others)
    losers = decision.verdicts[members:]
    unkept = dict(decision.unkept)
    if losers:
        kept = len(losers) // 2
        for one in losers[kept:]:
            said = one.reason or "it fits, with a lower score"
            unkept[said] = unkept.get(said, 0) + 1
        return replace(decision, verdicts=decision.verdicts[: members + kept], unkept=_most(unkept))
    if any(one.slot_ids for one in decision.others):
        return replace(decision, others=tuple(replace(one, slot_ids=(), note="") for one in decision.others))
    kept = len(decision.others) // 2
    unkept[ALSO_CHOSEN] = unkept.get(ALSO_CHOSEN, 0) + len(decision.others) - kept
    verdicts = decision.verdicts[: 1 + kept if decision.others else 0]
    return replace(decision, others=decision.others[:kept], verdicts=verdicts, unkept=unkept)


def parse_record(data: bytes) -> Decision:
    """The inverse of record_bytes, for records that we wrote ourselves; those of old are not compressed, or have more
    in them."""
    raw = json.loads(data if data.startswith(b"{") else zlib.decompress(data))
    return Decision(
        request=_request(raw["request"]),
        weights=Weights(**raw["weights"]),
        verdicts=tuple(Verdict(**each) for each in raw["verdicts"]),
        unkept=raw["unkept"],
        chosen=_chosen(raw["chosen"]) if raw.get("chosen") else None,
        others=tuple(_chosen(other) for other in raw.get("others", ())),
        engine=raw.get("engine", 1),
    )


def _request(raw: dict[str, Any]) -> Request:
    runtime = raw.get("runtime")
    labels = tuple(raw.get("labels", ()))
    return Request(**{**raw, "runtime": None if runtime is None else Runtime(runtime), "labels": labels})


def _chosen(raw: dict[str, Any]) -> Chosen:
    return Chosen(**{**raw, "slot_ids": tuple(raw["slot_ids"]), "runtime": Runtime(raw["runtime"])})
