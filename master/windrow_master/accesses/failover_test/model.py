"""The values of a failover test, which kills an Access: the agents that were there, how each came back, and which
samples were lost. Frozen where they are facts; the trial itself is filled while it runs. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from windrow_proto.ids import AccessId, BootId, HostId
from windrow_proto.intervals import Intervals


class Supervisor(Protocol):
    """Whoever keeps this market's daemons up, where that is `windrow up`."""

    async def accesses(self) -> Mapping[str, str]:
        """The names of the Accesses that it keeps, by their ids. Raises Unavailable when it does not answer."""

    async def kill(self, access_id: AccessId) -> int:
        """SIGKILL every process of one; it starts again as after any death. Returns the pid that was killed. Raises
        Conflict with what stands against it, Unavailable when nobody answers."""


class Phase(StrEnum):
    """The phase of a failover test. Unfinished: its time was over before every agent was back and had sent anew."""

    RUNNING = "running"
    FINISHED = "finished"
    UNFINISHED = "unfinished"


@dataclass(frozen=True, slots=True)
class Watched:
    """One agent that was connected through the Access when it was killed, and what it had been acknowledged of its
    boot by then: of samples, and of evidence."""

    host_id: HostId
    boot_id: BootId
    samples: Intervals
    evidence: Intervals


@dataclass(frozen=True, slots=True)
class Return:
    """A hello of an agent after the kill. at_ns: monotonic.

    samples_unacked, evidence_unacked: what of the boot that was watched the agent still holds as not acknowledged, by
    its own word. samples_had, evidence_had: the highest sequence that the Master held of that boot at that moment.
    """

    at_ns: int
    access_id: str
    boot_id: BootId
    samples_unacked: Intervals
    evidence_unacked: Intervals
    samples_had: int
    evidence_had: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of a failover test, by the log on the disk.

    acked_batches, acked_samples: acknowledged and found in the log, from a minute before the kill on. lost_*: those
    acknowledged, by the Master's marks or by the agent's own word, that the log does not hold; the samples of a batch
    that is not there are counted as in the largest batch of that agent. given_up: batches that an agent told to be gone
    without ever having been acknowledged. lost_evidence: records of evidence likewise. longest_gap_ns: the longest time
    between two batches of one agent that ended after the kill; usual_gap_ns: the median before it. None: nothing came.
    """

    acked_batches: int
    acked_samples: int
    lost_batches: int
    lost_samples: int
    given_up: int
    lost_evidence: int
    longest_gap_ns: int | None
    usual_gap_ns: int | None


@dataclass(slots=True)
class Trial:
    """One test, from the press of the button on."""

    access_id: AccessId
    name: str
    region: str
    actor: str
    reason: str
    asked_wall_ns: int
    watched: Mapping[HostId, Watched] = field(default_factory=dict)
    returns: dict[HostId, list[Return]] = field(default_factory=dict)
    phase: Phase = Phase.RUNNING
    killed_ns: int = 0
    killed_wall_ns: int = 0
    finished_ns: int | None = None
    finished_wall_ns: int | None = None
    verdict: Verdict | None = None
    problem: str = ""

    def back(self) -> int:
        """Return how many agents have come back, wherever."""
        return sum(bool(self.returns.get(host_id)) for host_id in self.watched)

    def elsewhere(self) -> int:
        """Return how many of them are at another Access."""
        last = (self.returns[host_id][-1] for host_id in self.watched if self.returns.get(host_id))
        return sum(one.access_id != self.access_id for one in last)

    def away_ns(self, now_ns: int) -> int:
        """The longest time that an agent was, or is, without a connection."""
        until_ns = now_ns if self.finished_ns is None else self.finished_ns
        firsts = [self.returns[h][0].at_ns if self.returns.get(h) else until_ns for h in self.watched]
        return max(firsts, default=self.killed_ns) - self.killed_ns
