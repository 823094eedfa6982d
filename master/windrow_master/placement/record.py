"""A decision as bytes and back: canonical JSON, so that equal decisions are equal bytes."""

import json
from dataclasses import asdict
from typing import Any

from windrow_master.placement.model import (
    Candidate,
    Chosen,
    Decision,
    Request,
    Runtime,
    SlotOffer,
    Verdict,
    Weights,
)


def record_bytes(decision: Decision) -> bytes:
    """The record as stored; keys sorted, no spaces, UTF-8."""
    return json.dumps(asdict(decision), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def parse_record(data: bytes) -> Decision:
    """The inverse of record_bytes, for records that we wrote ourselves."""
    raw = json.loads(data)
    return Decision(
        request=_request(raw["request"]),
        weights=Weights(**raw["weights"]),
        verification_exists=raw["verification_exists"],
        candidates=tuple(_candidate(each) for each in raw["candidates"]),
        verdicts=tuple(Verdict(**each) for each in raw["verdicts"]),
        unkept=raw["unkept"],
        chosen=None if raw["chosen"] is None else _chosen(raw["chosen"]),
    )


def _request(raw: dict[str, Any]) -> Request:
    runtime = raw["runtime"]
    return Request(**{**raw, "runtime": None if runtime is None else Runtime(runtime)})


def _candidate(raw: dict[str, Any]) -> Candidate:
    slots = tuple(SlotOffer(**slot) for slot in raw["slots"])
    return Candidate(**{**raw, "slots": slots, "runtimes": tuple(raw["runtimes"])})


def _chosen(raw: dict[str, Any]) -> Chosen:
    return Chosen(**{**raw, "slot_ids": tuple(raw["slot_ids"]), "runtime": Runtime(raw["runtime"])})
