"""Detects an Access that keeps messages back: both ends count, and compare over a second Access. Pure.

    agent  --canary 1: (nothing answered yet)------- second Access --> master: notes what it has sent so far
           <-reply 1-------------------------------- second Access --  notes what it has sent so far
           ... twelve seconds in which all of that arrives by the first Access ...
           --canary 2: answers 1, sent when reply 1 came, heard by now -->  judged against both notes

What is on its way is not kept back: only what was sent before the reply before counts, a pause between two canaries
old, and only if it is missing twice in a row. A canary that was held up is older still, so that a second Access cannot
accuse a first one. Of the lanes that no Access may shed each message counts. The counts are of one connection, as are
the keys of the proofs.

Telemetry may be shed, and may wait behind all else, so that what is missing of it says nothing; nor need the Master
have stored what it has heard. But an Access says how much waits in it and how much it has shed: if nothing waited a
while ago and nothing was shed, what was sent before must have come. Nothing is held against it as long as any comes,
or where it says otherwise, which its operator and the Master's see.

Frames of channels are many and large: on a slow line some are always on their way. One that is missing among others is
seen at once (session.py); here none may have come since the canary before, though some had been sent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from windrow_proto.model import Lane

COUNTED: Final = (Lane.CONTROL, Lane.EVIDENCE)
"""Lanes of class 0: they go before all else, so that a message that has not come has been kept back."""

STRIKES: Final = 2
"""Verdicts in a row before anybody acts: a slow line may hold messages up for longer than one pause."""


KEPT_MAX: Final = 1 << 32
"""Of what a reply tells: a host may say any numbers, and what does not fit into a reply must not be anybody's end."""


class Outflow(NamedTuple):
    """An Access's account of its way to the Master. empty: how often that nothing waits; shed: frames, since its start.
    Unsaid is no reason to accuse it."""

    empty: int = 0
    shed: int = 0


class Sent(NamedTuple):
    """One lane of one connection at its sender.

    before: the outer sequence before its first message; last: that of its last.
    """

    before: int
    last: int


@dataclass(frozen=True, slots=True)
class Heard:
    """The same lane at the other end. last: the highest outer sequence heard; count: how many messages were."""

    last: int = 0
    count: int = 0


_NOTHING: Final = Heard()
_UNSAID: Final = Outflow()
SentLanes = Mapping[Lane, Sent]
HeardLanes = Mapping[Lane, Heard]


@dataclass(frozen=True, slots=True)
class Canary:
    """An agent's account of its connection over another Access.

    answers: the number of the reply that came last, 0 before the first; sent: as it was when that came; heard: as it
    was when this left; samples: the outer sequence of the last telemetry when that came, 0: none.
    """

    number: int
    answers: int = 0
    sent: SentLanes = field(default_factory=dict)
    heard: HeardLanes = field(default_factory=dict)
    samples: int = 0


@dataclass(frozen=True, slots=True)
class CanaryReply:
    """The Master's verdict. kept_up, kept_down: messages of this host, or to it, that the first Access kept back."""

    number: int
    kept_up: int = 0
    kept_down: int = 0

    @property
    def is_kept_back(self) -> bool:
        """True if anything is missing."""
        return self.kept_up > 0 or self.kept_down > 0


@dataclass(slots=True)
class Tally:
    """Messages of one connection as one end counts them, its hello left out. samples: the last telemetry."""

    sent: dict[Lane, Sent] = field(default_factory=dict)
    heard: dict[Lane, Heard] = field(default_factory=lambda: {Lane.CHANNEL: _NOTHING})
    samples: int = 0

    def count_sent(self, lane: Lane, sequence: int) -> None:
        """One has left; sequences grow by one."""
        if lane in COUNTED or lane is Lane.CHANNEL:
            before = self.sent[lane].before if lane in self.sent else sequence - 1
            self.sent[lane] = Sent(before, sequence)
        elif lane is Lane.TELEMETRY:
            self.samples = sequence

    def count_heard(self, lane: Lane, sequence: int) -> None:
        """One has come; sequences grow."""
        if lane in COUNTED or lane is Lane.CHANNEL:
            self.heard[lane] = Heard(sequence, self.heard.get(lane, _NOTHING).count + 1)
        elif lane is Lane.TELEMETRY:
            self.samples = sequence


class AgentCanary:
    """The agent's end, for one connection."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._number = self._answered = self._strikes = self._samples_then = 0
        self._sent_then: SentLanes = {}

    def next(self) -> Canary:
        """The next one to send."""
        self._number += 1
        return Canary(self._number, self._answered, self._sent_then, dict(self._tally.heard), self._samples_then)

    def on_reply(self, reply: CanaryReply) -> bool:
        """Take a reply; returns whether it is certain now that messages are kept back. One that answers another canary
        says nothing."""
        if reply.number != self._number or reply.number == self._answered:
            return False
        self._answered, self._sent_then, self._samples_then = reply.number, dict(self._tally.sent), self._tally.samples
        self._strikes = self._strikes + 1 if reply.is_kept_back else 0
        return self._strikes >= STRIKES


class MasterCanary:
    """The Master's end, for one connection."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._replied = self._strikes = self._samples_then = 0
        self._sent_then: SentLanes = {}
        self._heard_then = self._told_then = _NOTHING
        """Of channels, when the canary before came: what was heard here, and there."""
        self._empty = 0
        self._shed = 0, 0

    @property
    def is_certain(self) -> bool:
        """True if messages are kept back, as it is certain with this reply and not before."""
        return self._strikes == STRIKES

    def judge(self, canary: Canary, outflow: Outflow = _UNSAID) -> CanaryReply:
        """Compare what one says with what was counted here; one that answers no reply is only answered. outflow: of the
        Access of this connection, now."""
        reply = CanaryReply(canary.number)
        if not self._replied:
            self._shed = outflow.shed, outflow.shed
        if self._replied and canary.answers == self._replied:
            kept_up, kept_down = _missing(canary.sent, self._tally.heard), _missing(self._sent_then, canary.heard)
            kept_up += self._samples_missing(canary.samples, outflow)
            if outflow.empty > self._empty:
                kept_up += _halted(canary.sent, self._tally.heard, self._heard_then)
            kept_down += _halted(self._sent_then, canary.heard, self._told_then)
            reply = CanaryReply(canary.number, min(kept_up, KEPT_MAX), min(kept_down, KEPT_MAX))
        self._empty = outflow.empty
        self._heard_then = self._tally.heard[Lane.CHANNEL]
        self._told_then = canary.heard.get(Lane.CHANNEL, _NOTHING)
        self._strikes = self._strikes + 1 if reply.is_kept_back else 0
        self._replied, self._sent_then = canary.number, dict(self._tally.sent)
        return reply

    def _samples_missing(self, sent: int, outflow: Outflow) -> int:
        """Telemetry that was sent since an earlier canary's and cannot wait anywhere any more, none of which came."""
        # What was shed before the last canary may have been sent after all that it speaks of: this one does, too.
        is_shed, self._shed = outflow.shed != self._shed[0], (self._shed[1], outflow.shed)
        if is_shed or not self._samples_then or self._tally.samples > self._samples_then:
            self._samples_then = sent
        return max(0, sent - self._samples_then) if outflow.empty > self._empty else 0


def _missing(sent: SentLanes, heard: HeardLanes) -> int:
    """Messages that were sent and never heard: gaps below the last one heard, and what was sent since."""
    missing = 0
    for lane in sent.keys() & set(COUNTED):
        one, there = sent[lane], heard.get(lane, _NOTHING)
        missing += max(0, max(one.last, there.last) - one.before - there.count)
    return missing


def _halted(sent: SentLanes, heard: HeardLanes, then: Heard) -> int:
    """Frames of channels that were sent and not heard, where none was since `then`. Who does not count them says
    nothing."""
    one, there = sent.get(Lane.CHANNEL), heard.get(Lane.CHANNEL)
    if one is None or there is None or there != then:
        return 0
    return max(0, one.last - one.before - there.count)
