"""Signs users in by address and password, with their second factor, and slows down whoever guesses.

A wrong answer does not tell whether there is such a user: the delay is counted by address, known or not, and a hash is
computed either way.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from windrow_master.identity import decide, second_factor
from windrow_master.identity.membership import address_key
from windrow_master.identity.model import (
    ALL_ROLES,
    MARKET_ROLES,
    SESSION_TOKEN_NAME,
    Account,
    AccountState,
    Principal,
    Role,
    Session,
)
from windrow_master.identity.passwords import LENGTH_MAX, SALT_BYTES, Passwords, is_outdated
from windrow_master.identity.people import Factor, User
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import AccountRepository, SessionRepository
from windrow_master.identity.sessions import SESSION_IDLE_NS, SESSION_LIFE_NS, begin_session, standing
from windrow_master.identity.tokens import issue_token
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import FactorRequired, Forbidden, TooMany, Unauthenticated
from windrow_proto.ids import AccountId
from windrow_proto.networks import network_of
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey
from windrow_proto.units import DAY, MINUTE, SECOND

WRONG: Final = "The address or the password is wrong."
GUESSES_FREE: Final = 5
"""Tries for one address from one network before it has to wait."""
GUESSES_FREE_TOGETHER: Final = 50
"""Likewise from all networks together, so that nobody else can make a user wait by a few wrong answers."""
DELAY_NS_MAX: Final = MINUTE
"""The longest wait."""
GUESSES_LIFE_NS: Final = 15 * MINUTE
KNOWN_LIFE_NS: Final = 30 * DAY
"""For which a network is known after a right answer from it: tries from elsewhere do not make its user wait."""
ADDRESSES_MAX: Final = 10_000
"""Addresses whose answers are counted; the oldest are forgotten first."""


class Delays:
    """Counts the tries for each address: from one place, and together. A try counts before it is judged, so that many
    at once are as many."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tries: OrderedDict[tuple[str, str], tuple[int, int]] = OrderedDict()
        self._known: OrderedDict[tuple[str, str], int] = OrderedDict()

    def begin(self, address: str, place: str) -> None:
        """Count a try. place: the network that it comes from; empty: does not matter. Raises TooMany while this address
        has to wait."""
        keys, now_ns = _keys(address, place), self._clock.monotonic_ns()
        if keys[0] in self._known and now_ns - self._known[keys[0]] < KNOWN_LIFE_NS:
            keys = keys[:1]
        for key, free in zip(keys, (GUESSES_FREE, GUESSES_FREE_TOGETHER), strict=False):
            self._check(key, free)
        for key in keys:
            count, at_ns = self._tries.pop(key, (0, now_ns))
            self._tries[key] = (1 if now_ns - at_ns > GUESSES_LIFE_NS else count + 1, now_ns)
        while len(self._tries) > ADDRESSES_MAX:
            self._tries.popitem(last=False)

    def _check(self, key: tuple[str, str], free: int) -> None:
        count, at_ns = self._tries.get(key, (0, 0))
        passed_ns = self._clock.monotonic_ns() - at_ns
        if count < free or passed_ns > GUESSES_LIFE_NS:
            return
        wait_ns = min(DELAY_NS_MAX, SECOND << min(count - free, 10))
        if passed_ns < wait_ns:
            left_s = -(-(wait_ns - passed_ns) // SECOND)
            raise TooMany(f"Too many wrong answers. Try again in {left_s} s.")

    def take_back(self, address: str, place: str) -> None:
        """The try was none: it was not judged, or a part of it was right."""
        for key in _keys(address, place):
            if key in self._tries:
                count, at_ns = self._tries[key]
                self._tries[key] = (max(0, count - 1), at_ns)

    def right(self, address: str, place: str) -> None:
        """Forget the tries of an address from this place: its user is there."""
        self.take_back(address, place)
        key = _keys(address, place)[0]
        self._tries.pop(key, None)
        self._known.pop(key, None)
        self._known[key] = self._clock.monotonic_ns()
        while len(self._known) > ADDRESSES_MAX:
            self._known.popitem(last=False)


def _keys(address: str, place: str) -> tuple[tuple[str, str], ...]:
    known = address_key(address)
    return ((known, place), (known, "*")) if place else ((known, ""),)


First = Callable[[UnitOfWork, User], AccountId | None]
"""Done before a session begins; the project that it is to begin in, None: the user's first."""


class SignIn:
    """Makes sessions for users who know their password."""

    def __init__(self, store: Store, clock: Clock, seal_key: SealKey, passwords: Passwords) -> None:
        self._store, self._seal_key, self._passwords = store, seal_key, passwords
        self.delays: Final = Delays(clock)

    async def with_password(
        self,
        address: str,
        password: str,
        code: str | None,
        browser: str,
        place: str,
        first: First = lambda uow, user: None,
    ) -> tuple[Session, str, Principal]:
        """A session, its secret, and who it is. code: of the second factor; None: none was given. place: the address
        that asks. first: what happens with the user in the same transaction. Raises Unauthenticated, FactorRequired,
        TooMany, or Forbidden for a user who is in no project."""
        if len(password) > LENGTH_MAX:
            raise Unauthenticated(WRONG)
        network = network_of(place) or "-"
        self.delays.begin(address, network)
        try:
            made = await self._judged(address, password, code, browser, place, first)
        except Unauthenticated as refused:
            if isinstance(refused, FactorRequired):
                self.delays.take_back(address, network)
            raise
        except BaseException:
            self.delays.take_back(address, network)
            raise
        self.delays.right(address, network)
        return made

    async def _judged(
        self, address: str, password: str, code: str | None, browser: str, place: str, first: First
    ) -> tuple[Session, str, Principal]:
        user = await self._store.read(lambda uow: uow[UserRepository].by_address(address))
        is_known = await self._passwords.matches(password, None if user is None else user.password)
        if user is None or not is_known or user.disabled_at_ns is not None:
            raise Unauthenticated(WRONG)
        renewed = await self._renewed(user, password)
        return await self._store.write(
            lambda uow: self._begin(uow, replace(user, password=renewed), user, code, browser, place, first),
            name="session.begin",
        )

    async def _renewed(self, user: User, password: str) -> str | None:
        """Its hash with today's parameters."""
        if user.password is None or not is_outdated(user.password):
            return user.password
        salt = await self._store.read(lambda uow: uow.random_bytes(SALT_BYTES))
        return await self._passwords.encoded(password, salt)

    def _begin(
        self, uow: UnitOfWork, renewed: User, was: User, code: str | None, browser: str, place: str, first: First
    ) -> tuple[Session, str, Principal]:
        user = uow[UserRepository].get(was.id)
        if user is None or user.password != was.password or user.disabled_at_ns is not None:
            raise Unauthenticated(WRONG)  # changed meanwhile
        self.check_factor(uow, user, code)
        if renewed.password != user.password:
            uow[UserRepository].save(replace(user, password=renewed.password))
        return begin_for(uow, user, first(uow, user), browser, place)

    def check_factor(self, uow: UnitOfWork, user: User, code: str | None) -> None:
        """Use up a code of this user's second factor, where there is one. Raises FactorRequired without a code,
        Unauthenticated for a wrong one."""
        factor = uow[UserRepository].factor(user.id)
        if factor is None or factor.confirmed_at_ns is None:
            return
        if code is None:
            raise FactorRequired
        used = second_factor.used_with(factor, self.secret_of(factor), code, uow.now_wall_ns)
        if used is None:
            raise Unauthenticated("The code is wrong, or was used already. Wait for the next one.")
        uow[UserRepository].save_factor(used)

    @property
    def seal_public(self) -> str:
        """The key that secrets of second factors are sealed for."""
        return self._seal_key.public

    def secret_of(self, factor: Factor) -> bytes:
        """The TOTP secret of a user."""
        return self._seal_key.open(factor.sealed, second_factor.PURPOSE + factor.user_id)


def begin_for(
    uow: UnitOfWork, user: User, account_id: AccountId | None, browser: str, place: str, life_ns: int = SESSION_LIFE_NS
) -> tuple[Session, str, Principal]:
    """A session of a user, in this project or, for None, in the first of the user's. Raises Forbidden where there is
    none."""
    account, roles = project_for(uow, user, account_id)
    token, _ = issue_token(
        uow,
        account.id,
        SESSION_TOKEN_NAME,
        ALL_ROLES,
        life_ns,
        f"user/{user.id}",
        user_id=user.id,
        is_sign_in=True,
    )
    principal = Principal(
        account.id,
        account.name,
        roles,
        token.id,
        token.name,
        token.expires_at_ns,
        user_id=user.id,
        user_name=user.name,
        organisation_id=account.organisation_id,
        has_all=True,
        may=account.roles & MARKET_ROLES,
        proved_at_ns=uow.now_wall_ns,
    )
    sessions, now_ns = uow[SessionRepository], uow.now_wall_ns
    if sessions.count_of(user.id, now_ns, now_ns - SESSION_IDLE_NS) >= decide.SESSIONS_MAX:
        # To end one takes a session: who lost them all would never come in again.
        longest_unused = min(sessions.of_user(user.id), key=lambda one: one.last_used_at_ns or one.created_at_ns)
        sessions.revoke(longest_unused.id, now_ns)
    session, secret = begin_session(uow, principal, browser, place)
    return session, secret, replace(principal, session_id=session.id, expires_at_ns=session.expires_at_ns)


def project_for(uow: UnitOfWork, user: User, account_id: AccountId | None) -> tuple[Account, frozenset[Role]]:
    """A project that this user may act in, with the user's roles there; for None the first. Raises Forbidden."""
    for wanted in [account_id] if account_id is not None else _projects(uow, user):
        account = uow[AccountRepository].get(wanted)
        roles = standing(uow, user, account) if account is not None else frozenset()
        if account is not None and roles and account.state is AccountState.ACTIVE:
            return account, roles
    raise Forbidden("You are a member of no such project. Ask an admin of your organisation.")


def _projects(uow: UnitOfWork, user: User) -> list[AccountId]:
    repository = uow[OrganisationRepository]
    own = list(repository.projects_of(user.id))
    overseen = [organisation.id for organisation, role in repository.organisations_of(user.id) if role is not None]
    return own + [account_id for one in overseen for account_id, _ in repository.projects(one)]
