"""Divides shared capacity among accounts, so that no account can take all of it. Pure.

An account may hold `per_account`. All accounts together leave `reserve` free, which is for operators and for the
Master's own moves: these are refused only when nothing at all is left.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from windrow_proto.errors import TooMany

K = TypeVar("K", bound=Hashable)

MASTER: Final = ""
"""The Master itself, among accounts."""


@dataclass(slots=True, eq=False)
class Share:
    """A part that somebody holds, until it is given back; giving it back twice is safe."""

    shares: "Shares"
    account: str
    amount: int
    _is_held: bool = True

    def give_back(self) -> None:
        """Let others have it."""
        if self._is_held:
            self._is_held = False
            self.shares.release(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.give_back()


@dataclass(frozen=True, slots=True)
class ShareLimits:
    """The limits of one shared thing, in things or bytes: limit for all together, per_account for one, reserve what
    of the limit is for operators and the Master."""

    limit: int
    per_account: int
    reserve: int


@dataclass(slots=True)
class Shares:
    """One shared thing. what: its name in the plural; ways: what the caller can do when it is refused."""

    what: str
    ways: str
    limits: ShareLimits
    taken: int = 0
    refused: int = 0
    _of: Counter[str] = field(default_factory=Counter)

    def take(self, account: str, *, is_trusted: bool = False, amount: int = 1) -> Share:
        """Hold a part. is_trusted: an operator or the Master asks. Raises TooMany, which says which limit was met."""
        try:
            self.check(self.of(account), self.taken, amount, is_trusted=is_trusted or account == MASTER)
        except TooMany:
            self.refused += 1
            raise
        self.taken += amount
        self._of[account] += amount
        return Share(self, account, amount)

    def check(self, own: int, taken: int, amount: int = 1, *, is_trusted: bool = False) -> None:
        """Raises TooMany where so much more is too much. own, taken: what the account holds, and all together."""
        limit, most, reserve = self.limits.limit, self.limits.per_account, self.limits.reserve
        if not is_trusted and own + amount > most:
            raise TooMany(f"This account holds {own:,} of at most {most:,} {self.what}. {self.ways}")
        if taken + amount > limit - (0 if is_trusted else reserve):
            kept = f", of which {reserve:,} are kept for operators" if reserve else ""
            raise TooMany(
                f"All accounts together hold {taken:,} of {limit:,} {self.what}{kept}. Try again in a moment."
            )

    def release(self, share: Share) -> None:
        """Take back what a share held; `Share.give_back` calls this once."""
        self.taken -= share.amount
        self._of[share.account] -= share.amount
        if self._of[share.account] <= 0:
            del self._of[share.account]

    def of(self, account: str) -> int:
        """Return how much an account holds."""
        return self._of.get(account, 0)


@dataclass(slots=True)
class SharesOfEach(Generic[K]):
    """The same shared thing at each of many places, such as hosts; a place where nothing is held costs nothing."""

    what: str
    ways: str
    limits: ShareLimits
    _places: dict[K, Shares] = field(default_factory=dict)

    def of(self, place: K) -> Shares:
        """The shares at one place."""
        found = self._places.get(place)
        if found is None:
            self._places = {other: shares for other, shares in self._places.items() if shares.taken}
            found = self._places[place] = Shares(self.what, self.ways, self.limits)
        return found
