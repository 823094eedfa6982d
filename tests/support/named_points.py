"""Daemons that kill themselves at a named point of their work, once, when a test has armed it.

`python -m tests.support.named_points MODULE FOLDER ...` is that daemon as shipped, with a look at the folder at each of
its points: who finds a file of a point's name there renames it, so that it counts once, and ends without a last word.
"""

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.support.wrapped_up import MODULES, wrapped

PASSED: Final = ".passed"


@dataclass(frozen=True, slots=True)
class Point:
    """A moment before or after each call of one function."""

    module: str
    owner: str
    function: str
    is_after: bool

    @property
    def kind(self) -> str:
        """Of the daemon whose moment it is."""
        return next(kind for kind, module in MODULES.items() if self.module.startswith(f"{module}."))


def _before(module: str, owner: str, function: str) -> Point:
    return Point(module, owner, function, False)


def _after(module: str, owner: str, function: str) -> Point:
    return Point(module, owner, function, True)


_STORE: Final = ("windrow_master.store.store", "Store", "_end")
_ACK: Final = ("windrow_master.link.route", "HostRoute", "_send_ack")
_COMMAND: Final = ("windrow_master.link.downlink", "Downlink", "_send_command")
_CHARGE: Final = ("windrow_master.market.repository", "LedgerRepository", "post")
_SAMPLES: Final = ("windrow_master.telemetry.service", "TelemetryService", "append_many")
_RELAY: Final = ("windrow_access.relay", "Relay", "_offer")
_QUEUES: Final = ("windrow_access.core.queues", "FairQueues", "take")
_OUTBOX: Final = ("windrow_access.outbox", "Outbox", "put")
_HANDED: Final = ("windrow_access.outbox", "Outbox", "get")
_JOURNAL: Final = ("windrow_agent.storage.journal", "Journal", "store")
_SPOOL: Final = ("windrow_agent.link.spool", "Spool", "append")
_FORGETS: Final = ("windrow_agent.link.spool", "Spool", "acknowledged")

POINTS: Final[Mapping[str, Point]] = {
    "master-before-commit": _before(*_STORE),
    "master-committed-and-nobody-told": _after(*_STORE),
    "master-samples-stored-and-not-acknowledged": _after(*_SAMPLES),
    "master-before-ack": _before(*_ACK),
    "master-acknowledged": _after(*_ACK),
    "master-between-outbox-and-send": _before(*_COMMAND),
    "master-command-sent-and-not-noted": _after(*_COMMAND),
    "master-before-charge": _before(*_CHARGE),
    "master-charged-and-not-committed": _after(*_CHARGE),
    "access-heard-from-agent-and-not-forwarded": _after(*_RELAY),
    "access-taken-for-master-and-not-sent": _after(*_QUEUES),
    "access-heard-from-master-and-not-forwarded": _before(*_OUTBOX),
    "access-taken-for-agent-and-not-sent": _after(*_HANDED),
    "agent-before-journal": _before(*_JOURNAL),
    "agent-journaled-and-not-done": _after(*_JOURNAL),
    "agent-before-spool": _before(*_SPOOL),
    "agent-spooled-and-not-sent": _after(*_SPOOL),
    "agent-before-forgetting-what-was-acknowledged": _before(*_FORGETS),
}


@dataclass(frozen=True, slots=True)
class Armoury:
    """Arms points in the daemons of one market."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of the market that `wrapped_up` starts."""
        words = (sys.executable, "-m", "tests.support.named_points")
        return wrapped({kind: (*words, module, str(self.folder)) for kind, module in MODULES.items()})

    def arm(self, name: str) -> None:
        """Kills the next process that comes to this point."""
        assert name in POINTS
        self.folder.mkdir(exist_ok=True)
        (self.folder / f"{name}{PASSED}").unlink(missing_ok=True)
        (self.folder / name).touch()

    def is_passed(self, name: str) -> bool:
        """True if somebody has died there since."""
        return (self.folder / f"{name}{PASSED}").exists()

    def disarm(self, name: str) -> bool:
        """No longer; returns whether somebody has died there meanwhile."""
        (self.folder / name).unlink(missing_ok=True)
        return self.is_passed(name)


def _watched(folder: Path, name: str, point: Point) -> None:
    owner: Any = getattr(import_module(point.module), point.owner)
    inner: Callable[..., Any] = getattr(owner, point.function)
    armed, passed = str(folder / name), str(folder / f"{name}{PASSED}")

    def reached() -> None:
        try:
            os.rename(armed, passed)
        except OSError:
            return  # nearly always
        os.kill(os.getpid(), signal.SIGKILL)

    @functools.wraps(inner)
    def called(*args: Any, **more: Any) -> Any:
        if not point.is_after:
            reached()
        answer = inner(*args, **more)
        # What takes from a queue that is empty has not come to anything.
        if point.is_after and answer != []:
            reached()
        return answer

    @functools.wraps(inner)
    async def awaited(*args: Any, **more: Any) -> Any:
        if not point.is_after:
            reached()
        answer = await inner(*args, **more)
        if point.is_after:
            reached()
        return answer

    setattr(owner, point.function, awaited if inspect.iscoroutinefunction(inner) else called)


def main() -> None:
    """The daemon with its points watched."""
    module, folder = sys.argv[1:3]
    sys.argv[1:3] = []
    for name, point in POINTS.items():
        if MODULES[point.kind] == module:
            _watched(Path(folder), name, point)
    import_module(f"{module}.__main__").main()


if __name__ == "__main__":
    main()
