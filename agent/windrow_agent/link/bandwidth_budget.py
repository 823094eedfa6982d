"""Limits what measurements of a host's line may cost its owner: a ceiling of their rate, and bytes per day, kept on
disk.

What a measurement may move at most is written down before it begins, and what it did move afterwards: neither a crash
nor a restart makes a day's bytes anew. It measures nothing itself.
"""

import json
from dataclasses import dataclass, replace
from typing import Final

from windrow_agent.threads import Runner
from windrow_proto.errors import TooMany, Unavailable
from windrow_proto.model import BandwidthSpec
from windrow_proto.ports import Clock, Disk
from windrow_proto.units import DAY, MIB, SECOND

DAY_MIB: Final = 4096
"""The daily budget if the owner sets none: more than the Master's four or five rounds of a day by three relays."""
DAY_MIB_MIN: Final = 64
"""Of what the owner may say: one measurement of LEAST_BYTES each way."""
DAY_MIB_MAX: Final = 1 << 20
CEILING_MBIT_S_MAX: Final = 1_000_000
LEAST_BYTES: Final = 32 * MIB
"""Each way: what is left of a day is used down to this. Less of it says little about a fast line."""
FILE: Final = "measured.json"
FILE_BYTES_MAX: Final = 4096


@dataclass(frozen=True, slots=True)
class LineLimits:
    """The limits that the owner sets. ceiling_bps: of each direction, in bit/s, 0: none; day_bytes: both directions of
    a UTC day."""

    ceiling_bps: int = 0
    day_bytes: int = DAY_MIB * MIB


class BandwidthBudget:
    """Gives measurements what is left of the day. runner: the thread of the disk."""

    def __init__(self, limits: LineLimits, disk: Disk, directory: str, runner: Runner, clock: Clock) -> None:
        self.limits = limits
        self._disk, self._directory, self._runner, self._clock = disk, directory, runner, clock

    async def take(self, spec: BandwidthSpec) -> BandwidthSpec:
        """Takes the part of this measurement that is affordable now; it counts as moved until `settle`. Raises TooMany
        if too little is left of the day."""
        ceiling_bytes = self.limits.ceiling_bps * spec.duration_ns // (8 * SECOND)
        cap_bytes = min(spec.cap_bytes, ceiling_bytes) if self.limits.ceiling_bps else spec.cap_bytes
        day, used = await self._today()
        left = max(0, self.limits.day_bytes - used) // 2
        if left < min(cap_bytes, LEAST_BYTES):
            raise TooMany(
                f"Measurements have used {used // MIB} of the {self.limits.day_bytes // MIB} MiB that this host's owner"
                " allows them each day; they are possible again from 00:00 UTC on.",
                retry_after_ns=(day + 1) * DAY - self._clock.wall_ns(),
            )
        taken = replace(spec, cap_bytes=min(cap_bytes, left))
        await self._keep(day, used + 2 * taken.cap_bytes)
        return taken

    async def settle(self, taken: BandwidthSpec, moved_bytes: int) -> None:
        """Both directions together moved so much of what was taken."""
        day, used = await self._today()
        await self._keep(day, max(0, used - 2 * taken.cap_bytes) + moved_bytes)

    async def _today(self) -> tuple[int, int]:
        """The number of the UTC day, and the bytes used in it. What cannot be read counts as all of it."""
        today = self._clock.wall_ns() // DAY
        try:
            text = await self._runner.call(self._read)
            day, used = (int(json.loads(text)[key]) for key in ("day", "bytes")) if text else (today, 0)
        except (OSError, ValueError, KeyError, TypeError):
            day, used = today, self.limits.day_bytes
            await self._keep(day, used)  # so that tomorrow is another day
        return (today, used) if day == today else (today, 0)

    def _read(self) -> bytes:
        is_there = FILE in self._disk.list(self._directory)
        return self._disk.read(f"{self._directory}/{FILE}", 0, FILE_BYTES_MAX) if is_there else b""

    async def _keep(self, day: int, used: int) -> None:
        path, text = f"{self._directory}/{FILE}", json.dumps({"day": day, "bytes": used}).encode()

        def write() -> None:
            self._disk.delete(f"{path}.new")
            self._disk.append(f"{path}.new", text)
            self._disk.sync(f"{path}.new")
            self._disk.rename(f"{path}.new", path)
            self._disk.sync_directory(self._directory)

        try:
            await self._runner.call(write)
        except OSError as error:
            raise Unavailable(f"Today's measurements of the line cannot be written down: {error}") from error
