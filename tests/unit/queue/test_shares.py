"""The tree of shares: trees that cannot be are refused, and tasks go where dominant shares say."""

from dataclasses import replace
from typing import Any

import pytest

from tests.unit.queue.cluster import BEGAN, tree
from windrow_master.queue.model import Amounts, cost
from windrow_master.queue.shares import ROOT, WHOLE, Node, Shares
from windrow_proto.errors import Conflict, WindrowError
from windrow_proto.units import DAY, HOUR

CARD = Amounts(gpus=1000)


def node(node_id: str = "acme", parent: str | None = ROOT, **more: Any) -> Node:
    return Node(node_id=node_id, parent=parent, **more)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([node(weight=0)], "weight must be above 0"),
        ([node(guarantee=-1)], "guarantee must be 0 to 100 %"),
        ([node(guarantee=WHOLE + 1)], "guarantee must be 0 to 100 %"),
        ([node(guarantee=600_000), node("other", guarantee=400_001)], "guarantee must be at most 40 %"),
        ([node(guarantee=500_000), node("lab", "acme", guarantee=500_001)], "at most 50 %, which acme has"),
        ([node(guarantee=2, ceiling=1)], "ceiling must be between the guarantee"),
        ([node(ceiling=WHOLE + 1)], "ceiling must be between the guarantee"),
        ([node("a", "b"), node("b", "a")], "no circle, as of a, b"),
        ([node("a", "a")], "no circle, as of a"),
        ([node("lab", "gone")], "has no parent gone: it is deleted"),
        ([node("lab", None)], "has no parent None"),
        ([node("0"), *(node(str(at + 1), str(at)) for at in range(9))], "levels deep"),
    ],
)
def test_a_tree_that_cannot_be_is_refused(nodes: list[Node], said: str) -> None:
    with pytest.raises(WindrowError, match=said):
        tree(8, DAY, *nodes)


def test_nodes_come_in_any_order_and_keep_their_usage_when_they_are_changed() -> None:
    shares = tree(8, DAY, node("lab", "acme"), node())
    shares.start("lab", CARD, BEGAN)
    before = shares.standing("lab", BEGAN + HOUR)
    shares.put(node("lab", "acme", weight=2))
    after = shares.standing("lab", BEGAN + HOUR)
    assert (after.used, after.held) == (before.used, before.held)
    assert after.rank[1] == pytest.approx(before.rank[1] / 2, rel=1e-4)


def test_rules_cannot_pull_away_what_is_given_on_nor_move_a_node() -> None:
    shares = tree(8, DAY, node(guarantee=500_000), node("lab", "acme", guarantee=400_000), node("other"))
    for changed in (node(guarantee=300_000), node("lab", "other")):
        with pytest.raises(WindrowError, match="must be"):
            shares.put(changed)


def test_a_node_is_deleted_only_when_nothing_is_below_it_or_runs() -> None:
    shares = tree(8, DAY, node(), node("lab", "acme"))
    shares.start("lab", CARD, BEGAN)
    for name in ("acme", "lab", ROOT):
        with pytest.raises(Conflict):
            shares.drop(name)
    shares.stop("lab", CARD, BEGAN)
    shares.drop("lab")
    shares.drop("acme")
    assert "lab" not in shares
    assert "acme" not in shares


def test_the_example_of_dominant_resource_fairness() -> None:
    """100 processors and 10,000 GB: tasks of 2 and 300 against tasks of 6 and 100 make 20 and 10 (DRF, 2011)."""
    shares = Shares(Amounts(cpus=100, memory=10_000), [node("a"), node("b")])
    asks = {"a": Amounts(cpus=2, memory=300), "b": Amounts(cpus=6, memory=100)}
    count, left = dict.fromkeys(asks, 0), Amounts(cpus=100, memory=10_000)
    while True:
        leaf = min(asks, key=lambda one: shares.rank(one, BEGAN))
        if min(left.plus(asks[leaf], -1)) < 0:
            break
        left = left.plus(asks[leaf], -1)
        shares.start(leaf, asks[leaf], BEGAN)
        count[leaf] += 1
    assert count == {"a": 20, "b": 10}
    assert [shares.standing(one, BEGAN).held for one in asks] == [0.6, 0.6]


@pytest.mark.parametrize(("held", "ends", "is_kept"), [(4, 1, True), (3, 1, True), (5, 1, False), (5, 2, True)])
def test_a_run_is_kept_where_without_it_the_guarantee_would_not_be_filled(held: int, ends: int, is_kept: bool) -> None:
    shares = tree(8, DAY, node(guarantee=500_000), node("lab", "acme"))
    shares.start("lab", Amounts(gpus=held * 1000), BEGAN)
    assert shares.is_guaranteed("lab", Amounts(gpus=ends * 1000)) is is_kept


def test_tiers_cost_what_they_are_worth_rounded_up() -> None:
    assert cost({"t4": 1000, "h100": 2000, "other": 1}, 5, 7, {"t4": 125, "h100": 2500}) == Amounts(5126, 5, 7)
    assert cost({"t4": 1}, 0, 0, {"t4": 1}).gpus == 1


def test_clocks_that_jump_by_years_leave_a_tree_that_still_decays() -> None:
    shares = tree(8, DAY, node())
    shares.start("acme", CARD, BEGAN)
    shares.stop("acme", CARD, BEGAN + 40 * 365 * DAY)
    shares.start("acme", CARD, BEGAN + HOUR)
    shares.stop("acme", CARD, BEGAN + 2 * HOUR)
    assert 0.1 < shares.standing("acme", BEGAN + 2 * HOUR).used / (1 / 8) < 1.1
    assert shares.standing("acme", BEGAN + 30 * DAY).used < 1e-8


def test_a_rank_is_the_same_for_nodes_of_the_same_use() -> None:
    shares = tree(8, DAY, node("a"), node("b"))
    ranks = [replace(shares.standing(one, BEGAN)).rank[:2] for one in ("a", "b")]
    assert ranks[0] == ranks[1]


def test_a_leaf_moves_with_what_it_holds_and_has_used_and_nobody_else_changes() -> None:
    def built(home: str) -> Shares:
        shares = tree(8, DAY, node("acme"), node("other"), node("lab", home), node("beside", "acme"))
        shares.start("lab", CARD, BEGAN)
        shares.start("beside", CARD, BEGAN + HOUR)
        shares.stop("lab", CARD, BEGAN + 2 * HOUR)
        shares.start("lab", Amounts(gpus=2000), BEGAN + 3 * HOUR)
        return shares

    moved, always = built("acme"), built("other")
    moved.take(node("lab", "other", weight=3))
    assert moved.path("lab") == (ROOT, "other", "lab") and moved.children("acme") == {"beside"}
    for name in (ROOT, "acme", "other", "lab", "beside"):
        has, wants = (one.standing(name, BEGAN + DAY) for one in (moved, always))
        assert [has.held, has.used] == pytest.approx([wants.held, wants.used]), name
    moved.stop("lab", Amounts(gpus=2000), BEGAN + DAY)
    assert moved.standing("other", BEGAN + DAY).held == 0


def test_rules_that_were_checked_are_taken_in_any_order() -> None:
    shares = tree(8, DAY, node(guarantee=WHOLE), node("a", "acme", guarantee=WHOLE), node("b", "acme"))
    shares.take(node("b", "acme", guarantee=600_000))
    shares.take(node("a", "acme", guarantee=400_000))
    assert shares.standing("b", BEGAN).node.guarantee == 600_000
