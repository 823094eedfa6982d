"""Hashes and checks passwords with Argon2id, and refuses those that are guessed first.

The parameters are OWASP's recommendation for Argon2id: 19 MiB, 2 passes, 1 lane.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, TypeVar

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from windrow_master.store.store import Store
from windrow_proto.errors import InvalidInput, TooMany

T = TypeVar("T")

MEMORY_KIB: Final = 19 * 1_024
PASSES: Final = 2
LENGTH_MIN: Final = 12
LENGTH_MAX: Final = 256
WAITING_MAX: Final = 50
"""Passwords that wait for their turn, two seconds at most; more are refused."""
AT_ONCE: Final = 2
"""Passwords that are hashed at once: each takes a core for some 40 ms, and MEMORY_KIB."""
SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
_CURRENT: Final = f"$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p=1$"
_NOBODYS: Final = _CURRENT + "c29tZSBzYWx0IG9mIG91cnM$" + "A" * 43
"""Compared with where there is no user, so that the answer takes as long."""

_COMMON: Final = frozenset(
    """
    password passwort motdepasse contrasena senha parola wachtwoord losenord haslo heslo salasana adgangskode
    qwerty qwertyuiop qwertzuiop azertyuiop asdfghjkl asdfghjkl zxcvbnm yxcvbnm qazwsxedc qazwsx zaqxsw
    iloveyou letmein welcome willkommen bienvenue bienvenido benvenuto monkey dragon football baseball basketball
    superman batman spiderman princess sunshine shadow master administrator admin root user guest login changeme
    default secret topsecret trustno starwars pokemon naruto minecraft fortnite computer internet whatever freedom
    liverpool chelsea arsenal manchester barcelona realmadrid juventus ferrari mercedes porsche michael jennifer
    jessica ashley daniel jordan hunter charlie thomas robert summer winter spring autumn monday friday january
    february september october november december correcthorsebatterystaple google facebook linkedin microsoft apple
    samsung windrow nvidia geforce cuda pytorch tensorflow
    """.split()  # noqa: SIM905  # a list of words reads better so
)
"""Words that passwords are made of most often, as lists of leaked ones show; our own selection."""
_WALKS: Final = ("1q2w3e4r5t6y", "1q2w3e4r5t", "1q2w3e4r", "q1w2e3r4", "1qaz2wsx3edc", "1qaz2wsx", "zaq12wsx", "qwe123")
"""Rows of keys with digits in them."""
_TAIL: Final = "0123456789!?.,-_#*+ $@"
"""What people put before or behind a word so that it counts as another one."""
_LETTERS_OF: Final = str.maketrans("013457@$!|", "oieastasil")
"""Letters by what people write in their place."""


class Passwords:
    """Hashes passwords off the event loop."""

    def __init__(self) -> None:
        self._turn, self._waiting = asyncio.Semaphore(AT_ONCE), 0

    async def encoded(self, password: str, salt: bytes) -> str:
        """The hash of a password, with its salt and parameters. salt: SALT_BYTES random bytes. Raises TooMany."""
        return await self._in_turn(_encode, password, salt)

    async def matches(self, password: str, kept: str | None) -> bool:
        """Return whether it is the password of this hash; takes as long where there is none. Raises TooMany."""
        if len(password) > LENGTH_MAX:
            return False
        return await self._in_turn(_matches, password, kept or _NOBODYS) and kept is not None

    async def _in_turn(self, work: Callable[..., T], *given: object) -> T:
        if self._waiting >= WAITING_MAX:
            raise TooMany("Too many people sign in at this moment. Try again in a few seconds.")
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(work, *given)
        finally:
            self._waiting -= 1


async def hashed(store: Store, passwords: Passwords, password: str, *known_words: str) -> str:
    """The hash of a new password. known_words: what is known of its user. Raises InvalidInput for one that is guessed
    first."""
    check_password(password, *known_words)
    salt = await store.read(lambda uow: uow.random_bytes(SALT_BYTES))
    return await passwords.encoded(password, salt)


def is_outdated(kept: str) -> bool:
    """Return whether a hash was made with other parameters than today's."""
    return not kept.startswith(_CURRENT)


def check_password(password: str, *known_words: str) -> None:
    """Raises InvalidInput for a password that is too short or too long, or is guessed first: a common word, one
    character or a row of keys again and again, or what is known of its user."""
    if not LENGTH_MIN <= len(password) <= LENGTH_MAX:
        said = f"password: A password has {LENGTH_MIN} to {LENGTH_MAX} characters; this one has {len(password)}."
        raise InvalidInput(said, subject="password")
    plain = password.casefold()
    if _is_guessed(plain, known_words) or _is_guessed(plain.strip(_TAIL), known_words) or _is_row(plain):
        said = "This password is among the first that are guessed. Take several words that do not belong together."
        raise InvalidInput(f"password: {said}", subject="password")


def _is_guessed(plain: str, known_words: Sequence[str]) -> bool:
    """Return whether little is left of it without common words, rows of keys, and what is known of its user."""
    for walk in _WALKS:
        plain = plain.replace(walk, "")
    bare = re.sub(r"[^a-z]", "", plain.translate(_LETTERS_OF))
    own = {part for word in known_words for part in re.split(r"[^a-z0-9]+", word.casefold()) if len(part) > 3}
    rest = bare
    for word in sorted(_COMMON | {re.sub(r"[^a-z]", "", one.translate(_LETTERS_OF)) for one in own}, key=len)[::-1]:
        rest = rest.replace(word, "") if word else rest
    is_guessed = len(set(rest)) < 4 and len(bare) >= len(plain) / 3 and bare != rest
    is_own = any(word and word.casefold() in plain and len(plain) < len(word) + 6 for word in known_words)
    return is_guessed or is_own or len(set(plain)) < 5


def _is_row(plain: str) -> bool:
    """Return whether it is a short piece again and again, or characters in the order of their codes."""
    for size in range(1, 5):
        if plain == (plain[:size] * len(plain))[: len(plain)]:
            return True
    steps = {ord(after) - ord(before) for before, after in pairwise(plain)}
    return steps <= {1, -9} or steps <= {-1, 9}


def _encode(password: str, salt: bytes) -> str:
    hashing = Argon2id(salt=salt, length=_HASH_BYTES, iterations=PASSES, lanes=1, memory_cost=MEMORY_KIB)
    return hashing.derive_phc_encoded(password.encode())


def _matches(password: str, kept: str) -> bool:
    try:
        Argon2id.verify_phc_encoded(password.encode(), kept)
    except (InvalidKey, ValueError):
        return False
    return True
