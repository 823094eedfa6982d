"""Faults of one Access of a market on its network: each fault with its end."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.regions import ACCESS_PORT, TRUNK_PORT, RegionalMarket

FROM_AGENTS = f"tcp dport {ACCESS_PORT} counter"
TO_AGENTS = f"tcp sport {ACCESS_PORT} counter"
TO_MASTER = f"tcp dport {TRUNK_PORT} counter drop"
FROM_MASTER = f"tcp sport {TRUNK_PORT} counter drop"


@dataclass(frozen=True, slots=True)
class Nemesis:
    """One kind of fault. strike: begins it at the Access of this name, and ends it."""

    name: str
    strike: Callable[[RegionalMarket, str], "Strike"]


Strike = Iterator[None]


def _ruled(incoming: str = "", outgoing: str = "") -> Callable[[RegionalMarket, str], Strike]:
    def strike(market: RegionalMarket, access: str) -> Strike:
        network = market.networks[access]
        network.forbid(incoming, outgoing)
        try:
            yield
        finally:
            network.forbid()

    return strike


def _frozen(market: RegionalMarket, access: str) -> Strike:
    """The process stands still; its kernel goes on answering."""
    pid = market.accesses[access].process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def _killed(market: RegionalMarket, access: str) -> Strike:
    """SIGKILL: whoever is connected hears a reset."""
    market.accesses[access].kill()
    yield
    market.restart_access(access)


def _half_open(market: RegionalMarket, access: str) -> Strike:
    """It dies without a word, and the next one knows nothing of the connections that its peers believe in."""
    network = market.networks[access]
    network.forbid(outgoing=f"{TO_AGENTS} drop\n{TO_MASTER}")
    try:
        market.accesses[access].kill()
        assert network.hits() > 0, "its last words were to be dropped"
    finally:
        network.forbid()
    market.restart_access(access)
    yield


BOTH_WAYS = Nemesis("silent both ways", _ruled(f"{FROM_AGENTS} drop", f"{TO_AGENTS} drop"))
DEAF = Nemesis("hears nobody", _ruled(incoming=f"{FROM_AGENTS} drop"))
MUTE = Nemesis("heard by nobody", _ruled(outgoing=f"{TO_AGENTS} drop"))
RESET = Nemesis("resets", _ruled(incoming=f"{FROM_AGENTS} reject with tcp reset"))
TRUNKLESS = Nemesis("cut off from the Master", _ruled(FROM_MASTER, TO_MASTER))
FROZEN = Nemesis("frozen", _frozen)
KILLED = Nemesis("killed", _killed)
HALF_OPEN = Nemesis("half-open", _half_open)


@contextmanager
def struck(market: RegionalMarket, access: str, nemesis: Nemesis) -> Iterator[None]:
    """Meanwhile this is so."""
    with contextmanager(nemesis.strike)(market, access):
        yield
