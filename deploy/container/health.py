"""Checks whether the program in this container is well: exits 0 or 1, and says why. Needs the standard library only.

http://...   a Master: it answers 200, or it waits for the leader's seat (503 that names the leader)
tcp://h:p    something listens there
pid://name   a process of this name runs
"""

import json
import socket
import sys
import urllib.error
import urllib.request
from pathlib import Path

ANSWER_S = 3.0
BODY_MAX = 65_536
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Past any proxy that the environment names: what is asked is in this very container."""


def of_master(url: str) -> str | None:
    """Why the Master at this URL is not well; None when it is."""
    try:
        with DIRECT.open(url, timeout=ANSWER_S) as answer:
            return None if answer.status == 200 else f"answered {answer.status}"
    except urllib.error.HTTPError as refusal:
        body = refusal.read(BODY_MAX)
        try:
            said = json.loads(body)
        except ValueError:
            return f"answered {refusal.code}"
        if refusal.code == 503 and isinstance(said, dict) and said.get("leader"):
            return None
        return f"answered {refusal.code}: {body.decode(errors='replace')[:500]}"
    except OSError as error:
        return f"does not answer: {error}"


def of_port(address: str) -> str | None:
    """Why nothing can be reached at host:port; None when it can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), ANSWER_S).close()
    except OSError as error:
        return f"{address} does not answer: {error}"
    return None


def of_process(name: str) -> str | None:
    """Why no process of this name runs; None when one does."""
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = line.read_bytes().split(b"\0")
        except OSError:
            continue
        if any(Path(word.decode(errors="replace")).name == name for word in words[:2]):
            return None
    return f"no {name} runs"


def main(target: str) -> int:
    """Look, say, and end."""
    scheme, _, rest = target.partition("://")
    problem = {"tcp": of_port, "pid": of_process}[scheme](rest) if scheme in {"tcp", "pid"} else of_master(target)
    print(problem or "well")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
