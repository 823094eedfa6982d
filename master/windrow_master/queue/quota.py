"""Quotas: how much a node of the tree of shares may have at once, and the answer to more than that. Pure.

A quota refuses what is new and ends nothing: one that is set below what is used waits until enough has ended.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Final

from windrow_master.spec import require
from windrow_proto.errors import InvalidInput
from windrow_proto.units import MIB, Microcents, money_text, parse_money

AMOUNT_MAX: Final = 10**17
_NUMBER: Final = re.compile(r"\d{1,30}(\.\d{1,3})?", re.ASCII)


class QuotaItem(StrEnum):
    """The things that a quota counts."""

    GPUS = "gpus"
    CPUS = "cpus"
    MEMORY = "memory"
    CLUSTERS = "clusters"
    WAITING = "waiting_jobs"
    SPEND = "spend_per_hour"


class NodeLevel(StrEnum):
    """The level of the node that a quota is of."""

    INSTALLATION = "installation"
    ORGANISATION = "organisation"
    PROJECT = "project"
    MEMBER = "member"


MAY_RAISE: Final = {
    NodeLevel.INSTALLATION: "An operator",
    NodeLevel.ORGANISATION: "An operator",
    NodeLevel.PROJECT: "An admin of the organisation, or an operator",
    NodeLevel.MEMBER: "An admin of the project or of its organisation",
}
What = tuple[QuotaItem, str]
"""An item and a tier; an empty tier means all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """At most `limit` of an item at once: cards and processors in milli, memory in MiB, spend in microcents an hour.
    tier: of cards, empty for all tiers together. Raises InvalidInput for what cannot be meant."""

    node_id: str
    level: NodeLevel
    item: QuotaItem
    limit: int
    tier: str = ""

    def __post_init__(self) -> None:
        require("limit", self.limit >= 0, "0 or more")
        require("tier", not self.tier or self.item is QuotaItem.GPUS, "left out: only GPUs have tiers")

    @property
    def name(self) -> str:
        """Its name, as people see it: gpus/h100 of the project lab."""
        tier = f"/{self.tier}" if self.tier else ""
        name = "" if self.level is NodeLevel.INSTALLATION else f" {self.node_id}"
        return f"{self.item}{tier} of the {self.level}{name}"


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A quota that a request would pass, what is used of it, and what was asked."""

    quota: Quota
    used: int
    asked: int

    @property
    def may_raise(self) -> str:
        """People who can raise it."""
        return MAY_RAISE[self.quota.level]

    @property
    def words(self) -> str:
        """For whoever asked."""
        limit, used, asked = (amount_text(self.quota.item, one) for one in (self.quota.limit, self.used, self.asked))
        return f"Quota {self.quota.name}: limit {limit}, used {used}, asked {asked}. {self.may_raise} can raise it."


def amount_text(item: QuotaItem, amount: int) -> str:
    """An amount with its unit."""
    if item in {QuotaItem.GPUS, QuotaItem.CPUS}:
        return f"{amount // 1000}{f'.{amount % 1000:03d}'.rstrip('0').rstrip('.')}"
    if item is QuotaItem.SPEND:
        return money_text(Microcents(amount))
    return f"{amount} MiB" if item is QuotaItem.MEMORY else str(amount)


def amount_of(item: QuotaItem, text: str) -> int:
    """An amount that somebody wrote: cards and processors with up to three decimals, bytes of memory, money an hour, or
    a number. Raises InvalidInput."""
    try:
        if item is QuotaItem.SPEND:
            amount = int(parse_money(text))
        elif not _NUMBER.fullmatch(text):
            raise ValueError
        elif item in {QuotaItem.GPUS, QuotaItem.CPUS}:
            amount = int((Decimal(text) * 1000).to_integral_exact())
        else:
            amount = int(text) // (MIB if item is QuotaItem.MEMORY else 1)
            require(
                "limit", amount > 0 or int(text) == 0, "0, or at least 1 MiB: memory is given in bytes, or as 64GiB"
            )
    except (ValueError, ArithmeticError):
        raise InvalidInput(f"limit: {text[:40]!r} is no amount of {item}.", subject="limit") from None
    require("limit", 0 <= amount <= AMOUNT_MAX, "0 or more, and less than a million million")
    return amount


def written(item: QuotaItem, amount: int) -> str:
    """The inverse of `amount_of`."""
    return str(amount * MIB) if item is QuotaItem.MEMORY else amount_text(item, amount)


def with_totals(amounts: Mapping[What, int]) -> dict[What, int]:
    """The same, and all tiers of GPUs together under the empty tier."""
    tiers = sum(amount for (item, tier), amount in amounts.items() if item is QuotaItem.GPUS and tier)
    return {**amounts, (QuotaItem.GPUS, ""): amounts.get((QuotaItem.GPUS, ""), 0) + tiers}


def check(quotas: Iterable[Quota], used: Mapping[tuple[str, What], int], asked: Mapping[What, int]) -> Exceeded | None:
    """The quota that a request passes by most of what it asks, of all those on its path; None: it may. used: by node,
    with totals; asked: GPUs by tier."""
    wanted = with_totals(asked)
    passed = []
    for one in quotas:
        what = (one.item, one.tier)
        more, has = wanted.get(what, 0), used.get((one.node_id, what), 0)
        if more > 0 and has + more > one.limit:
            passed.append(Exceeded(one, has, more))
    return max(passed, key=lambda each: (each.used + each.asked - each.quota.limit) / each.asked, default=None)
