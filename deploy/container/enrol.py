"""Writes a join token for each member named that has none yet: `enrol.py CLI_JSON FOLDER access-a=access agent=host`.

A token serves once and for a quarter of an hour: one that is older is made anew. A member that has joined needs none.
"""

import json
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path

FRESH_S = 600.0
ANSWER_S = 10.0


def make(record: dict[str, str], role: str) -> str:
    """A join token from the Master that leads, over HTTPS with the authority of its own file."""
    context = ssl.create_default_context(cafile=record["ca_pem"])
    headers = {"Authorization": f"Bearer {record['token']}", "Content-Type": "application/json"}
    url = f"{record['https_url']}/api/v1/join-tokens"
    asked = urllib.request.Request(url, json.dumps({"role": role}).encode(), headers)
    # Past any proxy that the environment names: the Master is a neighbour.
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    with urllib.request.build_opener(*handlers).open(asked, timeout=ANSWER_S) as answer:
        return str(json.load(answer)["join_token"])


def main(cli: str, folder: str, *members: str) -> None:
    """Make what is missing."""
    record = json.loads(Path(cli).read_text())
    for member in members:
        name, _, role = member.partition("=")
        path = Path(folder) / name
        if path.exists() and time.time() - path.stat().st_mtime < FRESH_S:
            continue
        held = path.with_suffix(".new")
        held.unlink(missing_ok=True)
        descriptor = os.open(held, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(make(record, role) + "\n")
        held.replace(path)
        print(f"a join token for {name} ({role})")


if __name__ == "__main__":
    main(*sys.argv[1:])
