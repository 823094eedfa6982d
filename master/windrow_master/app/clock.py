"""The Master's clock: wall time that goes on by the monotonic clock when the machine's wall clock jumps.

     machine's clock within a second of ours ──▶ followed at once, but never backwards
     further off ──▶ we go on as before, a second nearer with each minute; stated as `master.clock_jumped`
     at a start  ──▶ taken as it is, unless it cannot be right beside the last entry of the audit log

So a jump expires no lease, token, session or certificate of ours, charges nothing and deletes no history. Which of the
two clocks is right is for a person to say: correct the machine's, or restart the Master, which takes it over.
"""

import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from windrow_master.loops import again
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Unavailable, WindrowError
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, HOUR, MINUTE, SECOND

FOLLOWED_NS: Final = SECOND
"""Below it a difference is what NTP corrects every day, or a thread that waited between our two readings."""
NEARER_ONE_IN: Final = 64
"""How fast a jump is followed: a machine that stood still for an hour is right again after three days, and no lease of
half an hour is shortened by more than half a minute."""
STATED_NS: Final = 10 * SECOND
"""From which difference on people are told; leases and proofs bear as much."""
BEHIND_NS_MAX: Final = HOUR
"""At a start: time zones and a stopped machine's battery are not believed, seconds of a new NTP server are."""
AHEAD_NS_MAX: Final = 366 * DAY
"""At a start: nobody leaves a Master down for longer and expects its tokens and certificates to hold."""
LOOK_EVERY_NS: Final = 5 * SECOND

Tell = Callable[[str, str, Mapping[str, str]], Awaitable[None]]
"""Writes an event: kind, text, fields. Raises a WindrowError when it cannot."""


class SteadyClock:
    """The Clock port over another one. Used from any thread."""

    def __init__(self, clock: Clock, accepted: bool = False) -> None:
        """accepted: a person has said that the machine's clock is right, whatever the last entry says."""
        self._clock, self._accepted = clock, accepted
        self._guard = threading.Lock()
        self._monotonic_ns, self._steady_ns = clock.monotonic_ns(), clock.wall_ns()
        self._off_ns = 0
        self._since_ns: int | None = None

    def monotonic_ns(self) -> int:
        """The machine's."""
        return self._clock.monotonic_ns()

    async def sleep_ns(self, duration_ns: int) -> None:
        """Wait as the machine does."""
        await self._clock.sleep_ns(duration_ns)

    def wall_ns(self) -> int:
        """Wall time without jumps; never less than it was."""
        with self._guard:
            now_ns, machine_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
            elapsed_ns = max(0, now_ns - self._monotonic_ns)
            expected_ns = self._steady_ns + elapsed_ns
            off_ns = machine_ns - expected_ns
            nearer_ns = elapsed_ns // NEARER_ONE_IN
            step_ns = off_ns if abs(off_ns) <= FOLLOWED_NS else max(-nearer_ns, min(nearer_ns, off_ns))
            self._monotonic_ns, self._steady_ns = now_ns, max(self._steady_ns, expected_ns + step_ns)
            self._off_ns = machine_ns - self._steady_ns
            return self._steady_ns

    def resume(self, last_ns: int | None) -> None:
        """At a start: the audit log's last entry is of this time (None: there is none). Raises Unavailable where the
        machine's clock cannot be right beside it; a little behind, it is waited for."""
        if last_ns is None or self._accepted:
            return
        off_ns = self._clock.wall_ns() - last_ns
        if not -BEHIND_NS_MAX <= off_ns <= AHEAD_NS_MAX:
            side = "before" if off_ns < 0 else "after"
            raise Unavailable(
                f"This machine's clock stands {_span(off_ns)} {side} the last entry of the audit log. Leases, tokens "
                "and bills rest on it: correct it (`timedatectl`), and the Master starts. If it is right, start once "
                "with WINDROW_ACCEPT_CLOCK=on.",
                subject=ConditionCode.MASTER_CLOCK_JUMPED.value,
            )
        with self._guard:
            # From this moment on: a Master that waited for its seat has waited since this clock was made.
            self._monotonic_ns = self._clock.monotonic_ns()
            self._steady_ns = max(self._clock.wall_ns(), last_ns)

    @property
    def off_ns(self) -> int:
        """How far the machine's clock is ahead of ours (negative: behind)."""
        self.wall_ns()
        return self._off_ns

    def conditions(self) -> Iterable[Stated]:
        """For health: the jump, as long as it is not taken back."""
        off_ns = self.off_ns
        if abs(off_ns) < STATED_NS:
            self._since_ns = None
            return
        self._since_ns = self._since_ns or self.wall_ns()
        side = "ahead of" if off_ns > 0 else "behind"
        yield (
            ConditionCode.MASTER_CLOCK_JUMPED,
            f"This machine's clock has jumped: it stands {_span(off_ns)} {side} the Master's own, which goes on as "
            "before, so that nothing expires or is charged by it. New TLS connections are judged by the machine's.",
            self._since_ns,
        )

    async def keep(self, tell: Tell) -> None:
        """Tell of each jump and of its end when that can be written; until cancelled."""
        told = False

        async def turn() -> None:
            nonlocal told
            found = list(self.conditions())
            with suppress(WindrowError):  # then it is told at the next look; the condition says it meanwhile
                if found and not told:
                    code, detail, _ = found[0]
                    await tell("master_clock_jumped", f"{detail} {code.remedy}", {"off_ns": str(self._off_ns)})
                elif told and not found:
                    await tell("master_clock_agrees", "The machine's clock and the Master's agree again.", {})
                told = bool(found)

        await again(turn, LOOK_EVERY_NS, self._clock, "clock")


def _span(off_ns: int) -> str:
    size = abs(off_ns)
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if size >= 2 * unit:
            return f"{size // unit} {name}"
    return f"{size // SECOND} seconds"
