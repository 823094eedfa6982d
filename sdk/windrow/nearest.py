"""Distances of a market's Accesses from this machine: measured beside a tunnel, told to the Master with the next one.

Nobody waits for it: the first tunnel goes by its host's Access meanwhile, and nothing is measured where there is no
choice. What is remembered need not be true still: the Master judges it, and an Access that does not answer, or refuses
what others may do, is left out.
"""

import contextlib
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from windrow.config import state_folder
from windrow.remote.memory import write

KEPT_S: Final = 600.0
"""How long it is believed, also by the next program: a laptop moves, and Accesses come and go."""
TRIES: Final = 3
TRY_S: Final = 1.0
REFUSED_S: Final = 30.0
"""How long one that answers and refuses is left out: its limit, or its way to the Master, may be free at any time."""
MEASURED_MAX: Final = 16
"""Accesses; the Master names no more."""

Json = dict[str, Any]


def rtt_ms(address: str) -> float | None:
    """The least time that connecting there takes, of three tries; None: nobody answers. Blocks."""
    host, _, port = address.rpartition(":")
    times: list[float] = []
    with contextlib.suppress(OSError, ValueError):
        family, kind, protocol, _, where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        for _ in range(TRIES):
            with socket.socket(family, kind, protocol) as one:
                one.settimeout(TRY_S)
                began_s = time.perf_counter()
                one.connect(where)
                times.append((time.perf_counter() - began_s) * 1000)
    return min(times, default=None)


class Nearest:
    """Of one market."""

    def __init__(self, url: str, measure: Callable[[str], float | None] = rtt_ms) -> None:
        """url: the Master's. measure: blocks, on a thread."""
        self._path = state_folder().parent / f"accesses_{hashlib.sha256(url.encode()).hexdigest()[:32]}.json"
        self._measure = measure
        self._measured, self._until_s = _read(self._path)
        self._away: dict[str, float] = {}
        self._lock = threading.Lock()

    def wish(self) -> Json:
        """Returns the measurements that the Master is told with a request for a tunnel; nothing as long as nothing is
        known."""
        now_s = time.time()
        measured = self._measured if now_s < self._until_s else {}
        without = [access_id for access_id, until_s in self._away.items() if now_s < until_s]
        told: dict[str, list[Any]] = {
            "measured": [{"id": access_id, "rtt_ms": ms} for access_id, ms in measured.items()],
            "without": without,
        }
        return {name: found[:MEASURED_MAX] for name, found in told.items() if found}

    def away(self, access_id: str, for_s: float = KEPT_S) -> None:
        """It did not answer, or refused: others are asked for, for a while."""
        self._away.pop(access_id, None)
        self._away[access_id] = time.time() + for_s

    def learn(self, ticket: Json) -> None:
        """Measure those that the Master names, on a thread of their own, where that was not done a while ago."""
        accesses = ticket.get("accesses") or []
        if len(accesses) < 2 or time.time() < self._until_s or not self._lock.acquire(blocking=False):
            return
        threading.Thread(target=self._learn, args=(accesses[:MEASURED_MAX],), daemon=True).start()

    def _learn(self, accesses: list[Json]) -> None:
        try:
            found = {str(one["id"]): self._measure(str(one["address"])) for one in accesses}
            measured = {access_id: round(ms, 3) for access_id, ms in found.items() if ms is not None}
            until_s = time.time() + KEPT_S
            write(self._path, {"until": until_s, "measured": measured})
            self._measured, self._until_s = measured, until_s
        finally:
            self._lock.release()


def _read(path: Path) -> tuple[dict[str, float], float]:
    try:
        record = json.loads(path.read_bytes())
        until_s = min(float(record["until"]), time.time() + KEPT_S)
        return {str(one): float(ms) for one, ms in record["measured"].items()}, until_s
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}, 0.0
