"""The port of a service that runs code itself: a backend whose machine is one run of our helper. Pure.

    provision (submit) ─▶ describe (look) ─▶ follow: what it prints, what the helper says ─▶ terminate (cancel)

The helper (helper.py) reads its orders from our store of objects by one presigned call, and says what it does on its
second stream; so nothing has to reach this Master, and neither a key of the store nor a token of the market is there.
"""

import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from windrow_master.hybrid.backends.port import Backend
from windrow_master.jobs.model import JobRequest

HOURS_MAX: Final = 23
"""The longest run: services end what runs for a day."""
FIELD_OF: Final = {
    "volumes": "volumes",
    "secrets": "secrets",
    "registry_secret": "a registry's login",
    "slice": "a slice of a GPU",
    "entrypoint": "an entrypoint",
}
"""Fields of a request that such a service cannot serve, in words."""


class Stream(IntEnum):
    """LOG: of the command. WORDS: of the helper, a line of JSON each."""

    LOG = 1
    WORDS = 2


@dataclass(frozen=True, slots=True)
class Start:
    """The first of a run, as the user data of its order. orders: an address for the helper alone; image: empty: the
    backend's own."""

    orders: str
    image: str = ""

    @property
    def text(self) -> str:
        """As JSON."""
        return json.dumps({"orders": self.orders, "image": self.image})


def start_of(user_data: str) -> Start:
    """Read it back. Raises ValueError, KeyError."""
    found = json.loads(user_data)
    return Start(str(found["orders"]), str(found["image"]))


class Runs(Backend, Protocol):
    """See `Backend`: a purchase there is one run, and what its list shows is where it is."""

    def follow(self, run_id: str, stream: Stream) -> AsyncGenerator[bytes]:
        """All of a stream from its beginning, as it comes, until the run is over. Raises Refused, Doubtful."""


def why_not(request: JobRequest) -> str:
    """Why a job cannot go to such a service, in words; empty: it can."""
    asked = [words for name, words in FIELD_OF.items() if getattr(request, name)]
    if asked:
        return f"it asks for {', '.join(asked)}, which a service that runs code does not have here"
    return "" if request.argv else "it has no command"
