"""Tables of what joins and renewals get, who may do what, and which names are let in."""

from dataclasses import replace

import pytest

from tests.master_support import START_NS
from windrow_master.identity import decide
from windrow_master.identity.decide import Admit, Clone, Issue, Permission, Refuse, Rejoin, Repeat
from windrow_master.identity.model import JoinToken, Member, MemberRole, Role, Standing
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.units import DAY, MINUTE

CSR, OTHER = b"c" * 32, b"o" * 32
MEMBER = Member(
    id="host_1",
    role=MemberRole.HOST,
    account_id=AccountId("account_1"),
    name="one",
    simulated=False,
    sign_public=b"k" * 32,
    generation=5,
    csr_sha256=CSR,
    certificate_pem="pem",
    not_after_ns=START_NS + DAY,
    standing=Standing.GOOD,
    reason="",
    addresses=(),
    joined_at_ns=START_NS - DAY,
)
TOKEN = JoinToken(
    TokenId("jointoken_1"), AccountId("account_1"), MemberRole.HOST, b"t" * 32, START_NS, START_NS + 15 * MINUTE,
    None, None, None,
)  # fmt: skip


def _said(verdict: object) -> str:
    return f"Refuse({verdict.error.code})" if isinstance(verdict, Refuse) else type(verdict).__name__


@pytest.mark.parametrize(
    ("generation", "csr", "now_ns", "expected"),
    [
        (5, OTHER, START_NS, "Issue"),
        (5, CSR, START_NS, "Issue"),
        (5, OTHER, START_NS + 31 * DAY, "Issue"),
        (5, OTHER, START_NS + 31 * DAY + 1, "Refuse(certificate_refused)"),
        (4, CSR, START_NS, "Repeat"),
        (4, CSR, START_NS + 40 * DAY, "Repeat"),
        (4, OTHER, START_NS, "Clone"),
        (3, CSR, START_NS, "Clone"),
        (0, OTHER, START_NS, "Clone"),
        (6, OTHER, START_NS, "Refuse(certificate_refused)"),
    ],
)
def test_a_renewal_gets(generation: int, csr: bytes, now_ns: int, expected: str) -> None:
    assert _said(decide.judge_renewal(MEMBER, generation, csr, now_ns)) == expected


def test_a_renewal_counts_up_by_one() -> None:
    assert decide.judge_renewal(MEMBER, 5, OTHER, START_NS) == Issue(6)


@pytest.mark.parametrize("standing", [Standing.QUARANTINED, Standing.RETIRED])
def test_the_banned_are_refused_whatever_they_ask(standing: Standing) -> None:
    banned = replace(MEMBER, standing=standing)

    assert _said(decide.judge_renewal(banned, 5, CSR, START_NS)) == "Refuse(banned)"
    assert _said(decide.judge_renewal(banned, 4, CSR, START_NS)) == "Refuse(banned)"
    assert _said(decide.judge_join(TOKEN, MemberRole.HOST, banned, CSR, START_NS)) == "Refuse(banned)"


def test_an_unknown_id_is_refused() -> None:
    assert _said(decide.judge_renewal(None, 1, CSR, START_NS)) == "Refuse(certificate_refused)"


RESTORED = replace(MEMBER, generation=3, restored_at_ns=START_NS)
"""As a backup remembers it: two renewals are forgotten."""


def test_after_a_restore_a_member_may_come_once_with_a_newer_certificate_than_is_known() -> None:
    assert decide.judge_renewal(RESTORED, 5, OTHER, START_NS) == Issue(6)
    assert decide.judge_renewal(RESTORED, 3, OTHER, START_NS) == Issue(4), "of whom nothing was forgotten"
    assert _said(decide.judge_renewal(RESTORED, 2, OTHER, START_NS)) == "Clone", "a copy is still one"
    banned = replace(RESTORED, standing=Standing.QUARANTINED)
    assert _said(decide.judge_renewal(banned, 5, OTHER, START_NS)) == "Refuse(banned)"
    assert _said(decide.judge_renewal(RESTORED, 5, OTHER, START_NS + 30 * DAY)) == "Refuse(certificate_refused)"
    assert _said(decide.judge_renewal(MEMBER, 7, OTHER, START_NS)) == "Refuse(certificate_refused)", "never restored"


def test_who_joined_after_the_backup_is_told_why_he_is_not_known() -> None:
    refused = decide.judge_renewal(None, 1, CSR, START_NS, backup_at_ns=START_NS)

    assert isinstance(refused, decide.Refuse) and "restored from a backup of 2027-" in refused.error.detail
    assert "join with a new join token" in refused.error.detail


FIRST = replace(MEMBER, generation=1)
USED = replace(TOKEN, used_by="host_1", used_at_ns=START_NS)


@pytest.mark.parametrize(
    ("token", "role", "known", "csr", "now_ns", "expected"),
    [
        (TOKEN, MemberRole.HOST, None, CSR, START_NS, Admit),
        (TOKEN, MemberRole.HOST, MEMBER, OTHER, START_NS, Rejoin),
        (USED, MemberRole.HOST, FIRST, CSR, START_NS, Repeat),
        (USED, MemberRole.HOST, FIRST, OTHER, START_NS, Rejoin),
    ],
)
def test_a_join_gets(token, role, known, csr, now_ns, expected) -> None:
    assert type(decide.judge_join(token, role, known, csr, now_ns)) is expected


@pytest.mark.parametrize(
    ("token", "role", "known", "now_ns"),
    [
        (None, MemberRole.HOST, None, START_NS),
        (TOKEN, MemberRole.HOST, None, START_NS + 15 * MINUTE),
        (TOKEN, MemberRole.ACCESS, None, START_NS),
        (replace(TOKEN, revoked_at_ns=START_NS), MemberRole.HOST, None, START_NS),
        (USED, MemberRole.HOST, None, START_NS),
        (USED, MemberRole.HOST, MEMBER, START_NS),
        (replace(USED, used_by="host_2"), MemberRole.HOST, FIRST, START_NS),
        (USED, MemberRole.HOST, FIRST, START_NS + DAY),
    ],
    ids=["unknown", "stale", "wrong kind", "revoked", "used", "used and renewed", "used by another", "repeat too late"],
)
def test_a_used_stale_or_foreign_join_token_is_refused(token, role, known, now_ns) -> None:
    assert _said(decide.judge_join(token, role, known, CSR, now_ns)) == "Refuse(join_token_refused)"


def test_a_key_cannot_change_its_account() -> None:
    foreign = replace(TOKEN, account_id=AccountId("account_2"))

    assert _said(decide.judge_join(foreign, MemberRole.HOST, MEMBER, CSR, START_NS)) == "Refuse(conflict)"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("rack-7.example", "rack-7.example"),
        ("<script>alert(1)</script>", "_script_alert(1)_/script_"),
        ("a\x1b[31mred\u202e", "a__31mred_"),
        ("", "host"),
        ("x" * 500, "x" * 128),
    ],
)
def test_names_come_out_fit_for_every_screen(given: str, kept: str) -> None:
    assert decide.clean_name(given, "host") == kept


def test_odd_addresses_never_reach_a_certificate() -> None:
    assert decide.check_addresses(["127.0.0.1", "::1", "a.example", "127.0.0.1"]) == ("127.0.0.1", "::1", "a.example")
    assert decide.check_addresses(["*.svc.example.org"]) == ("*.svc.example.org",)
    for bad in ("", "a b", "evil\n", "*", "*.windrow", "a.*.example.org", "**.example.org", "x" * 254, "8377bb5b"):
        with pytest.raises(InvalidInput):
            decide.check_addresses([bad])


def test_every_permission_has_its_roles_and_renting_needs_a_renter() -> None:
    assert set(decide.GRANTS) | {Permission.NOBODY} == set(Permission)
    assert decide.is_allowed(frozenset({Role.RENTER}), Permission.RENT)
    assert not decide.is_allowed(frozenset({Role.PROVIDER, Role.AUDITOR}), Permission.RENT)
    assert not decide.is_allowed(frozenset(), Permission.SIGNED_IN)


def test_clone_says_why() -> None:
    verdict = decide.judge_renewal(MEMBER, 3, CSR, START_NS)

    assert isinstance(verdict, Clone) and "two processes" in verdict.reason
    assert isinstance(decide.judge_renewal(MEMBER, 4, CSR, START_NS), Repeat)
