"""The rules of shares of objects: how far a share lets whom in, and who may make one."""

from itertools import product

import pytest

from windrow_master.identity.decide import Permission
from windrow_master.identity.model import Principal, Role
from windrow_master.identity.object_shares import (
    LIFE_NS_MAX,
    Level,
    ObjectKind,
    ObjectShare,
    ReceiverKind,
    check_gives,
    check_life,
    check_receiver,
    includes,
    receivers_of,
    visiting,
)
from windrow_proto.errors import Forbidden, InvalidInput
from windrow_proto.ids import AccountId, TokenId

OWNER, OTHER = AccountId("account_owner"), AccountId("account_other")
PERMISSION = {Level.SEE: Permission.RENT_READ, Level.USE: Permission.RENT, Level.MANAGE: Permission.RENT}


def principal(*roles: Role, account_id: AccountId = OTHER, has_all: bool = True) -> Principal:
    """Ada, who acts in a project."""
    return Principal(
        account_id, "other", frozenset(roles), TokenId("token_1"), "laptop", 2**62, user_id="user_ada",
        user_name="Ada", organisation_id="organisation_1", has_all=has_all,
    )  # fmt: skip


def share(level: Level, kind: ReceiverKind = ReceiverKind.USER) -> ObjectShare:
    """A share of a cluster with Ada."""
    receiver = {"user": "user_ada", "project": str(OTHER), "organisation": "organisation_1"}[kind]
    return ObjectShare(
        "share_1", ObjectKind.CLUSTER, "cluster_1", "lab", OWNER, kind, receiver, level, "user/user_owner", 0
    )


def outcome(who: Principal, one: ObjectShare, needed: Level) -> str:
    """How a route that needs this level answers."""
    try:
        found = visiting(who, [one], PERMISSION[needed], needed)
    except Forbidden:
        return "refused"
    return "own rights" if found is None else "visits"


def test_each_level_includes_those_before_it() -> None:
    assert [[includes(have, needed) for needed in Level] for have in Level] == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]


@pytest.mark.parametrize(
    ("roles", "kind", "see", "use"),
    [
        ((), ReceiverKind.USER, "visits", "visits"),
        ((Role.PROVIDER,), ReceiverKind.USER, "visits", "visits"),
        ((), ReceiverKind.PROJECT, "own rights", "own rights"),
        ((Role.VIEWER,), ReceiverKind.PROJECT, "visits", "own rights"),
        ((Role.RENTER,), ReceiverKind.PROJECT, "visits", "visits"),
        ((Role.ADMIN,), ReceiverKind.ORGANISATION, "visits", "own rights"),
        ((Role.RENTER,), ReceiverKind.ORGANISATION, "visits", "visits"),
    ],
)
def test_a_user_is_let_in_by_name_and_others_by_what_they_may_in_their_own_project(roles, kind, see, use) -> None:
    who, given = principal(*roles), share(Level.MANAGE, kind)

    assert (outcome(who, given, Level.SEE), outcome(who, given, Level.USE)) == (see, use)


def test_a_token_with_a_part_of_the_roles_is_let_in_no_further_than_they_go() -> None:
    weak = principal(Role.VIEWER, has_all=False)

    assert outcome(weak, share(Level.USE), Level.SEE) == "visits"
    assert outcome(weak, share(Level.USE), Level.USE) == "own rights"


def test_no_share_gives_more_than_its_level_or_more_than_its_project() -> None:
    for level, needed, kind, role in product(Level, Level, ReceiverKind, Role):
        who = principal(role)
        try:
            found = visiting(who, [share(level, kind)], PERMISSION[needed], needed)
        except Forbidden:
            found = None
        if found is None:
            continue
        visitor, by = found
        assert includes(level, needed) and by.level is level
        assert visitor.roles <= {Role.VIEWER, Role.RENTER} and (Role.RENTER in visitor.roles) is (needed != Level.SEE)
        assert (visitor.account_id, visitor.home_id) == (OWNER, OTHER)
        assert (visitor.actor, visitor.holder, visitor.is_trusted) == (who.actor, who.holder, False)


def test_a_lower_level_is_refused_with_the_level_and_overseers_keep_their_own_rights() -> None:
    with pytest.raises(Forbidden, match="shared with you at the level see; this needs use"):
        visiting(principal(Role.RENTER), [share(Level.SEE)], Permission.RENT, Level.USE)
    assert outcome(principal(Role.RENTER, Role.OPERATOR), share(Level.SEE), Level.MANAGE) == "own rights"
    assert outcome(principal(Role.RENTER, account_id=OWNER), share(Level.SEE), Level.MANAGE) == "own rights"
    assert outcome(principal(Role.VIEWER, account_id=OWNER), share(Level.USE), Level.USE) == "visits"


def test_the_best_of_several_shares_counts() -> None:
    both = [share(Level.SEE), share(Level.USE, ReceiverKind.PROJECT)]

    found = visiting(principal(Role.RENTER), both, Permission.RENT, Level.USE)

    assert found is not None and found[1].receiver_kind is ReceiverKind.PROJECT


def test_a_caller_is_its_user_its_project_and_its_organisation() -> None:
    assert receivers_of(principal()) == ("user_ada", OTHER, "organisation_1")


@pytest.mark.parametrize(
    ("roles", "kind", "level", "refusal"),
    [
        ((Role.RENTER,), ObjectKind.CLUSTER, Level.MANAGE, None),
        ((Role.ADMIN,), ObjectKind.JOB, Level.SEE, None),
        ((Role.ADMIN,), ObjectKind.JOB, Level.USE, Forbidden),
        ((Role.VIEWER,), ObjectKind.CLUSTER, Level.SEE, Forbidden),
        ((Role.RENTER,), ObjectKind.TEMPLATE, Level.USE, None),
        ((Role.RENTER,), ObjectKind.TEMPLATE, Level.MANAGE, InvalidInput),
    ],
)
def test_nobody_shares_beyond_the_own_rights(roles, kind, level, refusal) -> None:
    if refusal is None:
        check_gives(principal(*roles), kind, level)
        return
    with pytest.raises(refusal):
        check_gives(principal(*roles), kind, level)


@pytest.mark.parametrize("receiver", ["user_ada", OTHER])
def test_nobody_shares_with_oneself_or_the_own_project(receiver: str) -> None:
    with pytest.raises(InvalidInput):
        check_receiver(principal(Role.RENTER), receiver)
    check_receiver(principal(Role.RENTER), "organisation_1")


@pytest.mark.parametrize("life_ns", [0, -1, LIFE_NS_MAX + 1])
def test_a_share_ends_neither_at_once_nor_in_a_hundred_years(life_ns: int) -> None:
    with pytest.raises(InvalidInput):
        check_life(life_ns)
    check_life(None)
    check_life(LIFE_NS_MAX)
