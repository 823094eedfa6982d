"""The state machine of a purchase as a table: the answer of each state to each event. Pure; it decides no timing.

    wanted ─▶ asking ─▶ booting ─▶ joined ─▶ serving ◀─▶ idle ─▶ draining ─▶ ending ─▶ gone
              asking ─▶ refused | doubtful ─▶ booting | never_made;   any paid state ─▶ ending

A purchase is asked for once and never again: an answer that is lost leaves it in doubt until the provider's list has
told. A machine that shows up after its purchase was believed over is ended like any other.
"""

from enum import StrEnum
from typing import Final

from windrow_master.fleet.states import Machine, Step


class State(StrEnum):
    """The state of a purchase."""

    WANTED = "wanted"
    """Its money is reserved; the provider was not asked yet."""
    ASKING = "asking"
    """The provider is being asked, or was when the Master died."""
    DOUBTFUL = "doubtful"
    """No answer came: there may be a machine."""
    BOOTING = "booting"
    """There is a machine, and its agent did not join yet."""
    JOINED = "joined"
    """Its host is there, and had no work yet."""
    SERVING = "serving"
    IDLE = "idle"
    DRAINING = "draining"
    """It takes no more work and is ended when the last has left."""
    ENDING = "ending"
    """Its end is asked for again and again, until the provider says twice that it is gone."""
    GONE = "gone"
    REFUSED = "refused"
    NEVER_MADE = "never_made"


class Event(StrEnum):
    """The events of a purchase. DOUBT: no answer. FOUND: the provider shows its machine, alive. NEVER_SEEN: it showed
    none for so long that there is none. DRAIN: it is to end, its work first; END: at once. GONE: the provider said
    twice that it is gone."""

    ASK = "ask"
    FOUND = "found"
    REFUSE = "refuse"
    DOUBT = "doubt"
    NEVER_SEEN = "never_seen"
    JOIN = "join"
    WORK = "work"
    REST = "rest"
    DRAIN = "drain"
    END = "end"
    GONE = "gone"


_S, _E = State, Event
FINAL: Final = (_S.GONE, _S.REFUSED, _S.NEVER_MADE)
PAID: Final = (_S.BOOTING, _S.JOINED, _S.SERVING, _S.IDLE, _S.DRAINING, _S.ENDING)
"""There is a machine, as far as the Master knows."""
USABLE: Final = (_S.JOINED, _S.SERVING, _S.IDLE)
_UNSURE: Final = (_S.ASKING, _S.DOUBTFUL)

PURCHASE: Final[Machine[State, Event]] = Machine(
    name="purchase",
    states=tuple(State),
    events=tuple(Event),
    initial=_S.WANTED,
    moves={
        (_S.WANTED, _E.ASK): _S.ASKING,
        **{(_S.WANTED, event): _S.NEVER_MADE for event in (_E.DRAIN, _E.END)},
        (_S.ASKING, _E.REFUSE): _S.REFUSED,
        (_S.ASKING, _E.DOUBT): _S.DOUBTFUL,
        **{(state, _E.FOUND): _S.BOOTING for state in _UNSURE},
        (_S.DOUBTFUL, _E.NEVER_SEEN): _S.NEVER_MADE,
        (_S.BOOTING, _E.JOIN): _S.JOINED,
        (_S.BOOTING, _E.DRAIN): _S.ENDING,  # it has no work
        (_S.JOINED, _E.WORK): _S.SERVING,
        (_S.IDLE, _E.WORK): _S.SERVING,
        (_S.SERVING, _E.REST): _S.IDLE,
        **{(state, _E.DRAIN): _S.DRAINING for state in USABLE},
        **{(state, _E.END): _S.ENDING for state in PAID if state is not _S.ENDING},
        (_S.ENDING, _E.GONE): _S.GONE,
        # It was believed over and is not: it is ended, and paid for.
        **{(state, _E.FOUND): _S.ENDING for state in FINAL},
    },
    stays=frozenset(
        {
            # Whoever may have a machine is ended as soon as it is found: its time is over then.
            *((state, event) for state in _UNSURE for event in (_E.DRAIN, _E.END)),
            *((_S.DOUBTFUL, event) for event in (_E.DOUBT, _E.REFUSE)),
            *((state, _E.FOUND) for state in PAID),
            *((state, _E.JOIN) for state in PAID if state is not _S.BOOTING),
            (_S.SERVING, _E.WORK),
            *((state, _E.REST) for state in (_S.JOINED, _S.IDLE)),
            *((state, event) for state in (_S.DRAINING, _S.ENDING) for event in (_E.WORK, _E.REST, _E.DRAIN)),
            (_S.ENDING, _E.END),
            *((state, event) for state in FINAL for event in (_E.DRAIN, _E.END)),
            (_S.GONE, _E.GONE),
            (_S.NEVER_MADE, _E.NEVER_SEEN),
        }
    ),
)


def step(state: State, event: Event) -> Step[State]:
    """Answer one event. Total."""
    return PURCHASE.step(state, event)
