"""Records how a container ended, and whether that was its own doing or its host's.

A daemon that is stopped ends its containers, and says afterwards what they said to that; of an end that it did not see,
such as by a power cut, it makes up an exit code. So an end is a container's own if its daemon remembers it, and that
nobody had asked for it. A daemon remembers while it runs, and no restart is so short that it would not forget.
"""

import re
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from windrow_agent.runtimes import docker_facts as facts_of
from windrow_agent.runtimes import docker_socket
from windrow_agent.runtimes.port import ENDED_BY_HOST, Run, RunState
from windrow_agent.runtimes.shim import write_whole
from windrow_proto.units import SECOND

CALL_S: Final = 30.0
REMEMBERED: Final = 256
"""Events that Docker remembers; then it forgets the oldest."""
ENDING: Final = frozenset({"2", "3", "9", "15"})
"""Signals that end what runs: by an image's wish a daemon asks with SIGINT or SIGQUIT."""
NOTE: Final = "end.json"
NOT_RUN: Final = frozenset({126, 127})
"""The exit codes of an init whose command is not there, or is no program (tini, catatonit, as shells)."""
_INIT_SAYS: Final = re.compile(rb"(?:\[FATAL tini \(\d+\)\]|ERROR \(catatonit:\d+\):).*?exec (.+?) failed: (.+)")
"""tini.c: `PRINT_FATAL("exec %s failed: %s", argv[0], strerror(errno))`."""


def seen(
    folder: Path, notes: threading.Lock, run: Run, base_url: str, container_id: str, last_line: Callable[[], bytes]
) -> Run:
    """This end as it was seen first: the running time and whose doing it was never change again.

    base_url: of the daemon that may know more; empty: it is known to be no doing of the host's. last_line: of its
    output. Raises RuntimeUnavailable. Blocking."""
    kept = _kept(folder)
    if not kept:
        words = not_run(last_line()) if run.exit_code in NOT_RUN and not run.detail else ""
        is_by_host = bool(base_url) and _is_by_host(base_url, container_id)
        kept = {"running_ns": run.running_ns, "is_by_host": is_by_host, "words": words}
        with notes:  # of several that look at once the first one's word stands
            if before := _kept(folder):
                kept = before
            elif folder.is_dir():
                write_whole(str(folder), NOTE, kept)
    run = replace(run, running_ns=kept["running_ns"], detail=run.detail or str(kept.get("words", "")))
    return replace(run, state=RunState.LOST, exit_code=None, detail=ENDED_BY_HOST) if kept.get("is_by_host") else run


def not_run(line: bytes) -> str:
    """The words for a command that could not be run, by what the container's init said of it; empty: it ran."""
    found = _INIT_SAYS.search(line)
    if found is None:
        return ""
    command, why = (one.decode("utf-8", "replace").strip()[:200] for one in found.groups())
    return f"The command {command!r} could not be run: {why}."


def _kept(folder: Path) -> dict[str, Any]:
    found = facts_of.read_note(folder / NOTE)
    return found if isinstance(found.get("running_ns"), int) else {}


def _is_by_host(base_url: str, container_id: str) -> bool:
    until = "{}.{:09}".format(*divmod(time.time_ns(), SECOND))
    return says_host(docker_socket.lines(base_url, f"/events?since=1&until={until}", CALL_S), container_id)


def says_host(events: list[dict[str, Any]], container_id: str) -> bool:
    """True if the end of this container was brought about on its host. events: all that its daemon remembers."""
    told = [one for one in events if one.get("Type") == "container" and one["Actor"]["ID"] == container_id]
    begun = max((n for n, one in enumerate(told) if one["Action"] == "start"), default=-1)
    since = told[begun + 1 :]
    if not any(one["Action"] == "die" for one in since):
        return len(events) < REMEMBERED
    return any(one["Action"] == "kill" and one["Actor"]["Attributes"].get("signal") in ENDING for one in since)
