"""Tickets for terminals: one use, half a minute, one cluster, and so many of each account."""

import pytest

from windrow_master.identity.model import Principal, Role
from windrow_master.network import terminal_tickets as tickets
from windrow_master.network.terminal_tickets import TICKET_LIFE_NS, TerminalTicket, TerminalTickets
from windrow_proto.errors import TooMany, Unauthenticated
from windrow_proto.ids import AccountId, ClusterId, TokenId

HERE, THERE = ClusterId("cluster_a"), ClusterId("cluster_b")


async def _always() -> bool:
    return True


def ticket(account: str = "a", cluster_id: ClusterId = HERE) -> TerminalTicket:
    roles = frozenset({Role.RENTER})
    principal = Principal(AccountId(account), account, roles, TokenId("token_1"), "t", 2**62)
    return TerminalTicket(principal, cluster_id, 0, _always)


def test_it_is_taken_once() -> None:
    held, given = TerminalTickets(), ticket()
    held.keep("secret", given, 0)
    assert held.take("secret", HERE, TICKET_LIFE_NS - 1) is given
    with pytest.raises(Unauthenticated):
        held.take("secret", HERE, 1)


def test_one_that_is_late_or_unknown_or_shown_to_another_cluster_opens_nothing_and_is_used_by_that() -> None:
    held = TerminalTickets()
    for secret, place, now_ns in (("secret", HERE, TICKET_LIFE_NS), ("secret", THERE, 1), ("other", HERE, 1)):
        held.keep("secret", ticket(), 0)
        with pytest.raises(Unauthenticated):
            held.take(secret, place, now_ns)
    assert len(held) == 1, "only the guess left it there"


def test_the_oldest_of_an_account_makes_way_and_others_are_not_touched() -> None:
    held = TerminalTickets()
    held.keep("theirs", ticket("b"), 0)
    for number in range(tickets.TICKETS_OF_ACCOUNT + 1):
        held.keep(f"secret{number}", ticket(), number)
    with pytest.raises(Unauthenticated):
        held.take("secret0", HERE, 20)
    held.take("secret1", HERE, 20)
    held.take("theirs", HERE, 20)


def test_there_are_so_many_until_they_are_too_old() -> None:
    held = TerminalTickets()
    for number in range(tickets.TICKETS_MAX):
        held.keep(f"secret{number}", ticket(f"account{number}"), 0)
    with pytest.raises(TooMany):
        held.keep("one more", ticket("late"), 1)
    held.keep("one more", ticket("late"), TICKET_LIFE_NS)
    assert len(held) == 1


def test_a_secret_is_not_kept() -> None:
    held = TerminalTickets()
    held.keep("secret", ticket(), 0)
    assert "secret" not in repr(held._waiting)
