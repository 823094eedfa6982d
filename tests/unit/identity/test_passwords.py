"""Passwords: which are refused, how they are kept, and that a wrong one costs as much as an unknown user."""

import pytest

from windrow_master.identity.passwords import Passwords, check_password, is_outdated
from windrow_proto.errors import InvalidInput

SALT = b"s" * 16
GOOD = "violet kettle upon seven hills"


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "x" * 257,
        "password1234",
        "P@ssw0rd!2026",
        "qwertyuiop12",
        "123456789012",
        "987654321098",
        "aaaaaaaaaaaa",
        "abcabcabcabcabc",
        "Letmein!!!!!!",
        "WelcomeWelcome1",
        "ada.lovelace1",
        "Lovelace-2026",
        "administrator1",
        "iloveyou-iloveyou",
        "Correct Horse Battery Staple",
    ],
)
def test_a_password_that_is_guessed_first_is_refused(password: str) -> None:
    with pytest.raises(InvalidInput, match="password"):
        check_password(password, "Ada Lovelace", "ada.lovelace@example.org")


@pytest.mark.parametrize(
    "password", [GOOD, "Tr0ub4dor&3-kayak", "žluťoučký kůň úpěl", "k7#Vq2!mZp9w", "my dog eats 14 apples"]
)
def test_another_is_taken(password: str) -> None:
    check_password(password, "Ada Lovelace", "ada.lovelace@example.org")


async def test_a_password_is_kept_as_argon2id_with_its_parameters_and_matches_itself_alone() -> None:
    passwords = Passwords()
    kept = await passwords.encoded(GOOD, SALT)
    assert kept.startswith("$argon2id$v=19$m=19456,t=2,p=1$") and GOOD not in kept
    assert await passwords.matches(GOOD, kept)
    assert not await passwords.matches(GOOD + " ", kept)
    assert not await passwords.matches(GOOD, None)
    assert not await passwords.matches("x" * 10_000, kept)
    assert not await passwords.matches(GOOD, "$argon2id$broken")
    assert not is_outdated(kept) and is_outdated(kept.replace("m=19456", "m=9216"))
