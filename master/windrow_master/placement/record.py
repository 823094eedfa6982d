"""Encodes a placement decision as bytes and decodes it: canonical JSON, compressed, so that equal decisions are
equal bytes. Pure."""

import json
import zlib
from dataclasses import fields
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
from windrow_proto.model import Isolation


def record_bytes(decision: Decision) -> bytes:
    """The record as stored; keys sorted, no spaces, UTF-8; compressed, since hosts say much the same of themselves."""
    text = json.dumps(decision, default=_named, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return zlib.compress(text.encode(), 1)


def _named(value: Any) -> dict[str, Any]:
    """One value of the record by its fields; those in it are asked for in their turn."""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def parse_record(data: bytes) -> Decision:
    """The inverse of record_bytes, for records that we wrote ourselves; those of old are not compressed."""
    raw = json.loads(data if data.startswith(b"{") else zlib.decompress(data))
    return Decision(
        request=_request(raw["request"]),
        weights=Weights(**raw["weights"]),
        verification_exists=raw["verification_exists"],
        candidates=tuple(_candidate(each) for each in raw["candidates"]),
        verdicts=tuple(Verdict(**each) for each in raw["verdicts"]),
        unkept=raw["unkept"],
        chosen=None if raw["chosen"] is None else _chosen(raw["chosen"]),
        others=tuple(_chosen(other) for other in raw.get("others", ())),
    )


def _request(raw: dict[str, Any]) -> Request:
    runtime = raw["runtime"]
    labels = tuple(raw.get("labels", ()))
    return Request(**{**raw, "runtime": None if runtime is None else Runtime(runtime), "labels": labels})


def _candidate(raw: dict[str, Any]) -> Candidate:
    slots = tuple(SlotOffer(**{**slot, "isolation": _isolation(slot)}) for slot in raw["slots"])
    labels = tuple(raw.get("labels", ()))
    return Candidate(**{**raw, "slots": slots, "runtimes": tuple(raw["runtimes"]), "labels": labels})


def _isolation(slot: dict[str, Any]) -> Isolation:
    """As recorded; before there were slices every card was whole."""
    is_gpu = slot["gpu_uuid"] is not None
    return Isolation(slot.get("isolation", Isolation.WHOLE if is_gpu else Isolation.UNSPECIFIED))


def _chosen(raw: dict[str, Any]) -> Chosen:
    return Chosen(**{**raw, "slot_ids": tuple(raw["slot_ids"]), "runtime": Runtime(raw["runtime"])})
