"""Quotas: the answer names the quota, its limit, what is used, what was asked and who can raise it."""

import pytest

from windrow_master.queue.quota import NodeLevel as Level
from windrow_master.queue.quota import Quota, amount_of, check, with_totals
from windrow_master.queue.quota import QuotaItem as Item
from windrow_proto.errors import InvalidInput


def quota(item: Item, limit: int, tier: str = "", level: Level = Level.PROJECT) -> Quota:
    return Quota(node_id="lab", level=level, item=item, limit=limit, tier=tier)


ADMIN = "An admin of the organisation, or an operator can raise it."
H100 = (Item.GPUS, "h100")
T4 = (Item.GPUS, "t4")


@pytest.mark.parametrize(
    ("one", "used", "asked", "said"),
    [
        (quota(Item.GPUS, 8000, "h100"), {H100: 7500}, {H100: 501}, "gpus/h100 of the project lab: limit 8, used 7.5,"),
        (quota(Item.GPUS, 8000), {H100: 7000, T4: 500}, {T4: 501}, "gpus of the project lab: limit 8, used 7.5,"),
        (quota(Item.GPUS, 8000, "h100"), {H100: 8000}, {T4: 1000}, None),
        (quota(Item.CPUS, 4000), {(Item.CPUS, ""): 4000}, {(Item.CPUS, ""): 500}, "limit 4, used 4, asked 0.5"),
        (quota(Item.MEMORY, 10), {}, {(Item.MEMORY, ""): 11}, "limit 10 MiB, used 0 MiB, asked 11 MiB"),
        (quota(Item.CLUSTERS, 2), {(Item.CLUSTERS, ""): 2}, {(Item.CLUSTERS, ""): 1}, "limit 2, used 2, asked 1"),
        (quota(Item.WAITING, 0), {}, {(Item.WAITING, ""): 1}, "waiting_jobs of the project lab: limit 0, used 0,"),
        (quota(Item.SPEND, 10**8), {}, {(Item.SPEND, ""): 10**8 + 1}, "limit 1.00, used 0.00, asked 1.00000001"),
        (quota(Item.CLUSTERS, 1), {(Item.CLUSTERS, ""): 5}, {(Item.CPUS, ""): 1}, None),
    ],
)  # fmt: skip
def test_the_answer(
    one: Quota, used: dict[tuple[Item, str], int], asked: dict[tuple[Item, str], int], said: str
) -> None:
    found = check([one], {("lab", what): amount for what, amount in with_totals(used).items()}, asked)
    assert (found is None) if said is None else (found is not None and said in found.words and ADMIN in found.words)


def test_each_level_names_people_who_can_raise_it() -> None:
    who = {}
    for level in Level:
        found = check([quota(Item.CLUSTERS, 0, level=level)], {}, {(Item.CLUSTERS, ""): 1})
        assert found is not None
        who[level] = found.may_raise
    assert who == {
        Level.INSTALLATION: "An operator",
        Level.ORGANISATION: "An operator",
        Level.PROJECT: "An admin of the organisation, or an operator",
        Level.MEMBER: "An admin of the project or of its organisation",
    }


@pytest.mark.parametrize(("item", "limit", "tier"), [(Item.GPUS, -1, ""), (Item.CPUS, 1, "h100")])
def test_a_quota_that_cannot_be_is_refused(item: Item, limit: int, tier: str) -> None:
    with pytest.raises(InvalidInput):
        quota(item, limit, tier)


@pytest.mark.parametrize(
    ("item", "text"), [(Item.MEMORY, "64"), (Item.GPUS, "١٢"), (Item.WAITING, "٣"), (Item.CPUS, "")]
)
def test_an_amount_that_cannot_be_meant_is_refused(item: Item, text: str) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        amount_of(item, text)


def test_no_memory_at_all_may_be_meant() -> None:
    assert (amount_of(Item.MEMORY, "0"), amount_of(Item.MEMORY, str(3 << 20))) == (0, 3)
