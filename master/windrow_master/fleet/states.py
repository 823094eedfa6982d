"""The fleet's state machines as tables: the answer of each state to each event. Pure; it decides no timing.

    admin    enrolled -> active <-> draining <-> maintenance -> active; any -> quarantined -> active; any -> retired
    verify   unverified -> verifying -> verified | failed | unverified; verified, failed -> verifying
    link     unseen -> online -> suspect -> lost; suspect, lost -> online; online, suspect -> unknown -> online, suspect
    slot     free -> reserved -> starting -> running -> stopping -> scrubbing -> free; any -> faulted -> free
    command  queued -> sent -> accepted -> running -> succeeded | failed | cancelled; timed_out; unknown asks again

Every (state, event) pair has one of three answers: it moves, it stays (a repetition: nothing to do), or it is refused
(the caller or the peer is wrong). The drawings in docs/diagrams are generated from these tables.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, TypeVar


class AdminState(StrEnum):
    """The decision of people about a host."""

    ENROLLED = "enrolled"
    ACTIVE = "active"
    DRAINING = "draining"
    MAINTENANCE = "maintenance"
    QUARANTINED = "quarantined"
    RETIRED = "retired"


class AdminEvent(StrEnum):
    """The events of a host's administration. REVERIFIED is an operator's or verification's word that a quarantined
    host is sound."""

    ACTIVATE = "activate"
    DRAIN = "drain"
    MAINTAIN = "maintain"
    QUARANTINE = "quarantine"
    REVERIFIED = "reverified"
    RETIRE = "retire"


class VerifyState(StrEnum):
    """The result of proving a host's hardware."""

    UNVERIFIED = "unverified"
    VERIFYING = "verifying"
    VERIFIED = "verified"
    FAILED = "failed"


class VerifyEvent(StrEnum):
    """BEGIN covers the first check, the weekly one, a new driver or set of GPUs, and the retry after a failure.

    GIVE_UP: it ended without a verdict: nothing can be proved there, or it was broken off.
    """

    BEGIN = "begin"
    PASS = "pass"
    FAIL = "fail"
    GIVE_UP = "give_up"


class VerifyOutcome(StrEnum):
    """The outcome of one card's challenge. UNPROVABLE: the host cannot run one, and said why. UNFINISHED: it was
    broken off. Neither is held against the card, and neither ends what an earlier failure says."""

    PASSED = "passed"
    FAILED = "failed"
    UNPROVABLE = "unprovable"
    UNFINISHED = "unfinished"


class LinkState(StrEnum):
    """The state of a host's link. UNSEEN: it joined and never spoke. UNKNOWN: it was not heard yet since this Master
    started; what was known of it before is old."""

    UNSEEN = "unseen"
    UNKNOWN = "unknown"
    ONLINE = "online"
    SUSPECT = "suspect"
    LOST = "lost"


class LinkEvent(StrEnum):
    """HEARD: a proven message of the live boot, after its hello was reconciled. The silences come from liveness.py.

    START: a new Master has begun its term, and has heard nobody yet. GONE: who sells the machine says that it has
    ended."""

    HEARD = "heard"
    SILENT = "silent"
    SILENT_LONG = "silent_long"
    START = "start"
    GONE = "gone"


class SlotState(StrEnum):
    """The state of a slot; all but FREE and FAULTED have a holder."""

    FREE = "free"
    RESERVED = "reserved"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SCRUBBING = "scrubbing"
    FAULTED = "faulted"


class SlotEvent(StrEnum):
    """RELEASE gives up a reservation that never started; SCRUBBED is the end of cleaning after a run."""

    RESERVE = "reserve"
    START = "start"
    RAN = "ran"
    STOP = "stop"
    STOPPED = "stopped"
    SCRUBBED = "scrubbed"
    RELEASE = "release"
    FAULT = "fault"
    REVERIFIED = "reverified"


class CommandState(StrEnum):
    """The state that a command is known to have reached."""

    QUEUED = "queued"
    SENT = "sent"
    ACCEPTED = "accepted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    UNKNOWN = "unknown"


class CommandEvent(StrEnum):
    """SEND..REFUSED as named by the Master's sending and the agent's status; the rest are verdicts of time.

    EXPIRE: not-after passed. SILENCE: no word about an accepted command for its whole deadline.
    NEVER_SEEN: the agent's journal does not hold the id. ABANDON: its host was retired.
    """

    SEND = "send"
    ACCEPT = "accept"
    RUN = "run"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    REFUSED = "refused"
    EXPIRE = "expire"
    SILENCE = "silence"
    NEVER_SEEN = "never_seen"
    ABANDON = "abandon"


class Answer(StrEnum):
    """The three answers a state can give to an event."""

    MOVES = "moves"
    STAYS = "stays"
    REFUSED = "refused"


S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """The answer to one event: the state afterwards, and which of the three answers it was."""

    state: S
    answer: Answer

    @property
    def moved(self) -> bool:
        """True if there is anything to write down."""
        return self.answer is Answer.MOVES


@dataclass(frozen=True, slots=True)
class Machine(Generic[S, E]):
    """One table. `moves` and `stays` are disjoint; every pair in neither is refused."""

    name: str
    states: tuple[S, ...]
    events: tuple[E, ...]
    initial: S
    moves: Mapping[tuple[S, E], S]
    stays: frozenset[tuple[S, E]]

    def step(self, state: S, event: E) -> Step[S]:
        """Answer one event. Total."""
        target = self.moves.get((state, event))
        if target is not None:
            return Step(target, Answer.MOVES)
        return Step(state, Answer.STAYS if (state, event) in self.stays else Answer.REFUSED)

    def final_states(self) -> tuple[S, ...]:
        """States that no event leaves."""
        leaving = {state for (state, _), target in self.moves.items() if target is not state}
        return tuple(state for state in self.states if state not in leaving)


_A, _AE = AdminState, AdminEvent
_NOT_RETIRED: Final = tuple(state for state in AdminState if state is not _A.RETIRED)
ADMIN: Final[Machine[AdminState, AdminEvent]] = Machine(
    name="admin",
    states=tuple(AdminState),
    events=tuple(AdminEvent),
    initial=_A.ENROLLED,
    moves={
        (_A.ENROLLED, _AE.ACTIVATE): _A.ACTIVE,
        (_A.ACTIVE, _AE.DRAIN): _A.DRAINING,
        (_A.DRAINING, _AE.ACTIVATE): _A.ACTIVE,
        (_A.DRAINING, _AE.MAINTAIN): _A.MAINTENANCE,
        (_A.MAINTENANCE, _AE.ACTIVATE): _A.ACTIVE,
        (_A.MAINTENANCE, _AE.DRAIN): _A.DRAINING,
        (_A.QUARANTINED, _AE.REVERIFIED): _A.ACTIVE,
        **{(state, _AE.QUARANTINE): _A.QUARANTINED for state in _NOT_RETIRED if state is not _A.QUARANTINED},
        **{(state, _AE.RETIRE): _A.RETIRED for state in _NOT_RETIRED},
    },
    stays=frozenset(
        {
            (_A.ACTIVE, _AE.ACTIVATE),
            (_A.DRAINING, _AE.DRAIN),
            (_A.MAINTENANCE, _AE.MAINTAIN),
            (_A.QUARANTINED, _AE.QUARANTINE),
            (_A.RETIRED, _AE.RETIRE),
            (_A.RETIRED, _AE.QUARANTINE),
        }
    ),
)

_V, _VE = VerifyState, VerifyEvent
VERIFY: Final[Machine[VerifyState, VerifyEvent]] = Machine(
    name="verify",
    states=tuple(VerifyState),
    events=tuple(VerifyEvent),
    initial=_V.UNVERIFIED,
    moves={
        (_V.UNVERIFIED, _VE.BEGIN): _V.VERIFYING,
        (_V.VERIFIED, _VE.BEGIN): _V.VERIFYING,
        (_V.FAILED, _VE.BEGIN): _V.VERIFYING,
        (_V.VERIFYING, _VE.PASS): _V.VERIFIED,
        (_V.VERIFYING, _VE.FAIL): _V.FAILED,
        (_V.VERIFYING, _VE.GIVE_UP): _V.UNVERIFIED,
        (_V.VERIFIED, _VE.FAIL): _V.FAILED,
    },
    stays=frozenset(
        {
            (_V.VERIFYING, _VE.BEGIN),
            (_V.VERIFIED, _VE.PASS),
            (_V.FAILED, _VE.FAIL),
            (_V.UNVERIFIED, _VE.GIVE_UP),
        }
    ),
)

_L, _LE = LinkState, LinkEvent
LINK: Final[Machine[LinkState, LinkEvent]] = Machine(
    name="link",
    states=tuple(LinkState),
    events=tuple(LinkEvent),
    initial=_L.UNSEEN,
    moves={
        (_L.UNSEEN, _LE.HEARD): _L.ONLINE,
        (_L.UNKNOWN, _LE.HEARD): _L.ONLINE,
        (_L.SUSPECT, _LE.HEARD): _L.ONLINE,
        (_L.LOST, _LE.HEARD): _L.ONLINE,
        (_L.ONLINE, _LE.SILENT): _L.SUSPECT,
        # A Master that was away may find the long silence first: Lost always goes through Suspect.
        (_L.ONLINE, _LE.SILENT_LONG): _L.SUSPECT,
        (_L.SUSPECT, _LE.SILENT_LONG): _L.LOST,
        (_L.UNKNOWN, _LE.SILENT): _L.SUSPECT,
        (_L.UNKNOWN, _LE.SILENT_LONG): _L.SUSPECT,
        (_L.ONLINE, _LE.START): _L.UNKNOWN,
        (_L.SUSPECT, _LE.START): _L.UNKNOWN,
        **{(state, _LE.GONE): _L.LOST for state in LinkState if state is not _L.LOST},
    },
    stays=frozenset(
        {
            (_L.ONLINE, _LE.HEARD),
            (_L.SUSPECT, _LE.SILENT),
            (_L.LOST, _LE.SILENT),
            (_L.LOST, _LE.SILENT_LONG),
            (_L.UNSEEN, _LE.SILENT),
            (_L.UNSEEN, _LE.SILENT_LONG),
            (_L.UNSEEN, _LE.START),
            (_L.UNKNOWN, _LE.START),
            (_L.LOST, _LE.START),
            (_L.LOST, _LE.GONE),
        }
    ),
)

_S, _SE = SlotState, SlotEvent
SLOT: Final[Machine[SlotState, SlotEvent]] = Machine(
    name="slot",
    states=tuple(SlotState),
    events=tuple(SlotEvent),
    initial=_S.FREE,
    moves={
        (_S.FREE, _SE.RESERVE): _S.RESERVED,
        (_S.RESERVED, _SE.START): _S.STARTING,
        (_S.RESERVED, _SE.RELEASE): _S.FREE,
        (_S.STARTING, _SE.RAN): _S.RUNNING,
        (_S.STARTING, _SE.STOP): _S.STOPPING,
        # It started, ran and ended before the Master heard of it: the end is what counts.
        (_S.STARTING, _SE.STOPPED): _S.SCRUBBING,
        (_S.RUNNING, _SE.STOP): _S.STOPPING,
        (_S.RUNNING, _SE.STOPPED): _S.SCRUBBING,
        (_S.STOPPING, _SE.STOPPED): _S.SCRUBBING,
        (_S.SCRUBBING, _SE.SCRUBBED): _S.FREE,
        (_S.FAULTED, _SE.REVERIFIED): _S.FREE,
        **{(state, _SE.FAULT): _S.FAULTED for state in SlotState if state is not _S.FAULTED},
    },
    stays=frozenset(
        {
            (_S.FREE, _SE.RELEASE),
            (_S.FREE, _SE.SCRUBBED),
            (_S.FREE, _SE.STOPPED),
            (_S.STARTING, _SE.START),
            (_S.RUNNING, _SE.START),
            (_S.RUNNING, _SE.RAN),
            (_S.STOPPING, _SE.STOP),
            (_S.STOPPING, _SE.RAN),  # a late word of a start that is already being undone
            (_S.SCRUBBING, _SE.STOP),
            (_S.SCRUBBING, _SE.STOPPED),
            (_S.SCRUBBING, _SE.RAN),
            (_S.FAULTED, _SE.FAULT),
            (_S.FAULTED, _SE.STOP),
            (_S.FAULTED, _SE.STOPPED),
            (_S.FAULTED, _SE.SCRUBBED),
            (_S.FAULTED, _SE.RAN),
        }
    ),
)

_C, _CE = CommandState, CommandEvent
_OPEN: Final = (_C.QUEUED, _C.SENT, _C.ACCEPTED, _C.RUNNING, _C.UNKNOWN)
_DONE: Final = (_C.SUCCEEDED, _C.FAILED, _C.CANCELLED, _C.TIMED_OUT)
_REPORTS: Final = {
    _CE.ACCEPT: _C.ACCEPTED,
    _CE.RUN: _C.RUNNING,
    _CE.SUCCEED: _C.SUCCEEDED,
    _CE.FAIL: _C.FAILED,
    _CE.CANCEL: _C.CANCELLED,
    _CE.REFUSED: _C.FAILED,
}
COMMAND: Final[Machine[CommandState, CommandEvent]] = Machine(
    name="command",
    states=tuple(CommandState),
    events=tuple(CommandEvent),
    initial=_C.QUEUED,
    moves={
        # The agent's word moves any open command, also one whose sending was forgotten in a crash of the Master.
        **{
            (state, event): target
            for state in _OPEN
            for event, target in _REPORTS.items()
            if target is not state and (state, event) != (_C.RUNNING, _CE.ACCEPT)
        },
        **{(state, _CE.ABANDON): _C.FAILED for state in _OPEN},
        (_C.QUEUED, _CE.SEND): _C.SENT,
        (_C.QUEUED, _CE.EXPIRE): _C.TIMED_OUT,
        # It left the Master and nobody answered: it may have been accepted, so it is asked for, never repeated blindly.
        (_C.SENT, _CE.EXPIRE): _C.UNKNOWN,
        (_C.ACCEPTED, _CE.SILENCE): _C.UNKNOWN,
        (_C.RUNNING, _CE.SILENCE): _C.UNKNOWN,
        # Past not-after the agent refuses it, and it says it never had it: it never ran and never will.
        (_C.UNKNOWN, _CE.NEVER_SEEN): _C.TIMED_OUT,
        # The agent's journal was lost; what the command left behind is found by reconcile.
        (_C.ACCEPTED, _CE.NEVER_SEEN): _C.FAILED,
        (_C.RUNNING, _CE.NEVER_SEEN): _C.FAILED,
    },
    stays=frozenset(
        {
            (_C.QUEUED, _CE.NEVER_SEEN),
            (_C.SENT, _CE.SEND),
            (_C.SENT, _CE.NEVER_SEEN),  # within not-after: the resend delivers it
            (_C.ACCEPTED, _CE.ACCEPT),
            (_C.ACCEPTED, _CE.EXPIRE),
            (_C.RUNNING, _CE.ACCEPT),
            (_C.RUNNING, _CE.RUN),
            (_C.RUNNING, _CE.EXPIRE),
            (_C.UNKNOWN, _CE.EXPIRE),
            (_C.UNKNOWN, _CE.SILENCE),
            # The result of a done command never changes.
            *((state, event) for state in _DONE for event in CommandEvent if event is not _CE.SEND),
        }
    ),
)

COMMAND_DONE: Final = frozenset(_DONE)
SLOT_HELD: Final = frozenset({_S.RESERVED, _S.STARTING, _S.RUNNING, _S.STOPPING, _S.SCRUBBING})


def step_admin(state: AdminState, event: AdminEvent) -> Step[AdminState]:
    """One decision about a host."""
    return ADMIN.step(state, event)


def step_verify(state: VerifyState, event: VerifyEvent) -> Step[VerifyState]:
    """One step of verification."""
    return VERIFY.step(state, event)


def step_link(state: LinkState, event: LinkEvent) -> Step[LinkState]:
    """One verdict about a host's link."""
    return LINK.step(state, event)


def step_slot(state: SlotState, event: SlotEvent) -> Step[SlotState]:
    """One step of a slot's life."""
    return SLOT.step(state, event)


def step_command(state: CommandState, event: CommandEvent) -> Step[CommandState]:
    """One word about a command."""
    return COMMAND.step(state, event)
