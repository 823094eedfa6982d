"""Watches over a machine that the market bought at a provider: tells that it will be gone, and notes that the Master
speaks.

 each 5 s:  notice of the provider ──▶ event `host.leaving`
            a word of the Master   ──▶ file `master-heard`, by whose age a timer of root's ends a machine without Master
"""

import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, Protocol

import structlog

from windrow_agent.core.notices import SHUTDOWN, Notice
from windrow_agent.threads import Runner
from windrow_proto.host_fields import CLOUD_INSTANCE, CLOUD_PROVIDER
from windrow_proto.model import Event
from windrow_proto.ports import Clock
from windrow_proto.units import MILLISECOND, SECOND

HEARD_FILE: Final = "master-heard"
HOST_LEAVING: Final = "host.leaving"
LOOK_NS: Final = 5 * SECOND
"""As often as providers advise: a notice comes two minutes ahead."""
LEAVE_NS: Final = 20 * SECOND
"""For the work to be moved when the machine shuts down, which gives each service 30 s."""
POLL_NS: Final = 200 * MILLISECOND
SYSTEMCTL_S: Final = 2.0
_SYSTEMD: Final = Path("/run/systemd/system")

log = structlog.get_logger()


class Notices(Protocol):
    """Interface: a provider's notices. Blocking, for seconds at most."""

    def notice(self) -> Notice | None: ...


def is_machine_ending() -> bool:
    """Return whether the machine is shutting down. Without systemd, as in a pod, the answer is always yes."""
    if not _SYSTEMD.is_dir():
        return True
    try:
        asked = ["systemctl", "is-system-running"]
        done = subprocess.run(asked, capture_output=True, text=True, timeout=SYSTEMCTL_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.stdout.strip() == "stopping"


class BoughtHost:
    """`run` watches for as long as the agent runs. is_ending: whether the machine shuts down; blocking."""

    def __init__(
        self,
        folder: Path,
        notices: Notices | None,
        runner: Runner,
        clock: Clock,
        is_ending: Callable[[], bool] = is_machine_ending,
    ) -> None:
        """folder: of the agent's state. notices: None: this provider sends none."""
        self._file, self._notices, self._is_ending = folder / HEARD_FILE, notices, is_ending
        self._runner, self._clock = runner, clock
        self._is_heard = False
        self._told: set[str] = set()

    def heard(self) -> None:
        """The Master has said something that is believed."""
        self._is_heard = True

    async def run(self, tell: Callable[[Event], Awaitable[None]]) -> None:
        """Look every five seconds, until cancelled."""
        while True:
            await self.look(tell)
            await self._clock.sleep_ns(LOOK_NS)

    async def look(self, tell: Callable[[Event], Awaitable[None]]) -> None:
        """Note what the Master said, tell what the provider says, each notice once."""
        if self._is_heard:
            self._is_heard = False
            try:
                await self._runner.call(self._file.touch)
            except OSError as error:
                log.warning("master_heard_not_noted", path=str(self._file), detail=str(error))
        notice = await self._runner.call(self._notices.notice) if self._notices is not None else None
        if notice is not None:
            await self._leaving(notice, tell)

    async def end(self, tell: Callable[[Event], Awaitable[None]], is_empty: Callable[[], bool]) -> None:
        """The agent is to end: where its machine does too, tell so, and stay until its work has been moved, or its time
        is over."""
        if not await self._runner.call(self._is_ending):
            return
        await self._leaving(Notice(SHUTDOWN, self._clock.wall_ns() + LEAVE_NS), tell)
        end_ns = self._clock.monotonic_ns() + LEAVE_NS
        while not is_empty() and self._clock.monotonic_ns() < end_ns:
            await self._clock.sleep_ns(POLL_NS)

    async def _leaving(self, notice: Notice, tell: Callable[[Event], Awaitable[None]]) -> None:
        if notice.why in self._told:
            return
        log.warning("host_leaving", why=notice.why, at_ns=notice.at_ns)
        fields = {"why": notice.why} | ({} if notice.at_ns is None else {"at_ns": str(notice.at_ns)})
        await tell(Event(HOST_LEAVING, self._clock.wall_ns(), "", "", fields))
        self._told.add(notice.why)


def words_of(instance_id: str) -> dict[str, str]:
    """The provider and the instance id, for the inventory; empty while they are not known."""
    return {CLOUD_PROVIDER: "aws", CLOUD_INSTANCE: instance_id} if instance_id else {}
