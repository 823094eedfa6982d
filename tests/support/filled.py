"""Makes answers of the API with long names and whole ids from its description (docs/openapi.json), for tests of what is
shown of them."""

import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

from tests.support.pages import ROOT

NAME: Final = "a-name-that-somebody-chose-to-be-long-01"
ID: Final = "{}_019ac3f5e0b17a3c9f6e1d2b3c4d5e6f"
CARD: Final = "GPU-8f3c1c2e-0001-4000-8000-000000000001"
SENTENCE: Final = f"The link of {ID.format('host')} is offline since a while, so {CARD} cannot be had"
BY_NAME: Final[dict[str, Any]] = {
    "tier": "rtx-6000-ada/C",
    "price_per_hour": "18.203417",
    "version": 3,
    "provider": "a-provider",
    "unit": "gpu",
    "isolation": "whole",
    "container_users": "own",
    "currency": "TEST",
    "headline": "maintenance",
    "link_state": "online",
    "phase": "Degraded",
    "kind": "service",
    "used": "18.203417",
    "limit": "1234.567891",
    "verify_state": "verified",
    "admin_state": "maintenance",
    "state_text": "rented, 1 of 7 parts",
    "slot_state": "running",
    "hash": "f" * 64,
    "address": "relay-of-a-region.example:7443",
    "region": "eu-central",
    "ratio": 0.5,
    "reliability": 0.987,
    "state": "Checkpointing",
    "actor": f"user/{ID.format('user')}",
    "resource_id": "lab-a100-01",
    "runtime": "docker",
    "role": "org_owner",
    "debit": f"renter/{ID.format('account')}",
    "credit": f"held/{ID.format('rental')}",
    "issuer": "https://login.example.org",
    **dict.fromkeys(("per_hour", "per_day", "in_all", "today", "reserved", "forecast", "spent", "paid"), "18.203417"),
}
"""Values by the name of a field, where its type says too little."""
SPANS: Final = {"ends_at": timedelta(hours=5), "expires_at": timedelta(days=9)}


@cache
def schemas() -> dict[str, Any]:
    """The schemas of the API by name."""
    found: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text(encoding="utf-8"))
    schemas: dict[str, Any] = found["components"]["schemas"]
    return schemas


def filled(name: str, *, is_full: bool) -> dict[str, Any]:
    """An object of this schema. is_full: with a value in each field; else with none where there may be none."""
    found: dict[str, Any] = _value({"$ref": f"#/components/schemas/{name}"}, name, is_full)
    return found


def _value(schema: dict[str, Any], field: str, is_full: bool) -> Any:
    if "$ref" in schema:
        schema = schemas()[schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        is_nullable = any(one.get("type") == "null" for one in schema["anyOf"])
        return None if is_nullable and not is_full else _value(schema["anyOf"][0], field, is_full)
    if "enum" in schema:
        return max(schema["enum"], key=lambda word: ("_" in word, len(word)))
    kind = schema.get("type")
    if kind == "object":
        inner = schema.get("properties") or {}
        return {name: _value(one, name, is_full) for name, one in inner.items()}
    if kind == "array":
        return [_value(schema["items"], field.removesuffix("s"), is_full)] * 3 if is_full and "items" in schema else []
    if schema.get("description") == "A decimal amount of money":
        return BY_NAME["price_per_hour"]
    return _plain(kind, field)


def _plain(kind: str | None, field: str) -> Any:
    if field in BY_NAME:
        return BY_NAME[field]
    if kind == "boolean":
        return True
    if kind in ("integer", "number"):
        return 24 * 2**30 if field.endswith("bytes") else 0.87 if field.endswith("ratio") else 1234
    if field.endswith("_at") or field in ("at", "since"):
        return (datetime.now(UTC) + SPANS.get(field, -timedelta(days=3, hours=1))).isoformat()
    if field in ("uuid", "gpu_uuid"):
        return CARD
    if field == "id" or field.endswith("_id") or field in ("subject", "account"):
        return ID.format(field.removesuffix("_id").rpartition("_")[2].replace("id", "thing"))
    if any(word in field for word in ("amount", "cost", "price", "balance", "held")):
        return "1234.567891"
    if any(word in field for word in ("reason", "detail", "text", "problem", "note", "error", "words")):
        return SENTENCE
    return NAME
