"""Divides what all accounts use together, so that no account can take all of it. Pure.

An account may hold `per_account`. All accounts together leave `reserve` free, which is for operators and for the
Master's own moves: these are refused only when nothing at all is left.
"""

from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from windrow_proto.errors import TooMany

MASTER: Final = ""
"""Who the Master itself is, among accounts."""


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
    """How much there is of one shared thing, in things or bytes: limit for all together, per_account for one, reserve
    what of the limit is for operators and the Master."""

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
        if account != MASTER and not is_trusted:
            own = self._of[account]
            if own + amount > self.limits.per_account:
                most = self.limits.per_account
                self._refuse(f"This account holds {own:,} of at most {most:,} {self.what}. {self.ways}")
            if self.taken + amount > self.limits.limit - self.limits.reserve:
                self._refuse(self._all())
        elif self.taken + amount > self.limits.limit:
            self._refuse(self._all())
        self.taken += amount
        self._of[account] += amount
        return Share(self, account, amount)

    def release(self, share: Share) -> None:
        """Take back what a share held; `Share.give_back` calls this once."""
        self.taken -= share.amount
        self._of[share.account] -= share.amount
        if self._of[share.account] <= 0:
            del self._of[share.account]

    def of(self, account: str) -> int:
        """How much an account holds."""
        return self._of.get(account, 0)

    def _all(self) -> str:
        return (
            f"All accounts together hold {self.taken:,} of {self.limits.limit:,} {self.what}, "
            f"of which {self.limits.reserve:,} are kept for operators. Try again in a moment."
        )

    def _refuse(self, why: str) -> None:
        self.refused += 1
        raise TooMany(why)
