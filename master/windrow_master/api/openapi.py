"""Writes the description of the HTTP API: `python -m windrow_master.api.openapi docs/openapi.json`."""

import json
import sys
from pathlib import Path

from windrow_master.api.app import description


def write(path: Path) -> None:
    """Write it, readable and with a stable order of its own."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(description(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
