"""Writes the console's types from docs/openapi.json: `python -m tests.architecture.api_types`; a test compares."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OPENAPI = ROOT / "docs" / "openapi.json"
TYPES = ROOT / "console" / "src" / "api" / "schema.ts"
HEAD = """// The shapes of the HTTP API, written from docs/openapi.json by `python -m tests.architecture.api_types`.
// Do not change them here: change the Master's models, then `make openapi`.
"""
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(schema: dict[str, Any]) -> str:
    """One schema as a TypeScript type."""
    if "$ref" in schema:
        return name_of(schema["$ref"].rsplit("/", 1)[-1])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    for together in ("anyOf", "oneOf"):
        if together in schema:
            return " | ".join(dict.fromkeys(typescript(part) for part in schema[together]))
    kind = schema.get("type")
    if "prefixItems" in schema:
        return f"[{', '.join(typescript(part) for part in schema['prefixItems'])}]"
    if kind == "array":
        inner = typescript(schema.get("items", {}))
        return f"({inner})[]" if " " in inner else f"{inner}[]"
    if kind == "object":
        rest = schema.get("additionalProperties", True)
        return f"Record<string, {typescript(rest) if isinstance(rest, dict) else 'unknown'}>"
    return PLAIN.get(str(kind), "unknown")


def name_of(title: str) -> str:
    """A component's name as an identifier: `Page_HostOut_` is `PageHostOut`."""
    return re.sub(r"[^A-Za-z0-9]", "", title)


def interface(title: str, schema: dict[str, Any]) -> str:
    """One component."""
    said = schema.get("description", "").split("\n\n")[0].replace("\n", " ")
    comment = f"/** {said} */\n" if said else ""
    if "properties" not in schema:
        return f"{comment}export type {name_of(title)} = {typescript(schema)};\n"
    required = set(schema.get("required", ()))
    lines = []
    for field, inner in schema["properties"].items():
        if "description" in inner:
            lines.append(f"  /** {inner['description']} */")
        lines.append(f"  {field}{'' if field in required else '?'}: {typescript(inner)};")
    return f"{comment}export interface {name_of(title)} {{\n" + "\n".join(lines) + "\n}\n"


def written() -> str:
    """The whole file."""
    components = json.loads(OPENAPI.read_text(encoding="utf-8"))["components"]["schemas"]
    return HEAD + "".join(f"\n{interface(title, schema)}" for title, schema in sorted(components.items()))


if __name__ == "__main__":
    TYPES.write_text(written(), encoding="utf-8")
