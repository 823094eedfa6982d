"""Authenticates callers by an API token, or by a browser's session that was begun with one; notes when each was last
used.

A session has a secret of its own, so that the token itself never lies in a browser, and ends with the token.
"""

import base64
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from windrow_master.identity import decide
from windrow_master.identity.membership import roles_in, service_roles
from windrow_master.identity.model import (
    ALL_ROLES,
    MARKET_ROLES,
    Account,
    AccountState,
    ApiToken,
    Principal,
    Role,
    Session,
    SessionId,
)
from windrow_master.identity.people import User
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import (
    AccountRepository,
    ServiceAccountRepository,
    SessionRepository,
    TokenRepository,
)
from windrow_master.sift import sift
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Forbidden, NotFound, Unauthenticated
from windrow_proto.ids import AccountId, TokenId
from windrow_proto.ports import Clock
from windrow_proto.units import DAY, SECOND

TOKEN_LIFE_NS_MAX: Final = 90 * DAY
SESSION_LIFE_NS: Final = 14 * DAY
SESSION_IDLE_NS: Final = 3 * DAY
"""Over a weekend a browser stays signed in; one that was forgotten somewhere does not."""
SESSION_PREFIX: Final = "ws_"
SECRET_BYTES: Final = 32
SECRET_CHARS_MAX: Final = 200
CACHE_MAX: Final = 1_024
"""Secrets whose principals are kept in memory; one Master writes, so a revocation empties its entry exactly."""
CACHE_LIFE_NS: Final = 2 * SECOND
"""In a process that did not hear of a revocation; with the look of api/streaming a stream ends within 5 seconds."""


class Asking:
    """Turns secrets into principals."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._cache: OrderedDict[bytes, tuple[int, Principal]] = OrderedDict()
        self._used: dict[str, int] = {}
        self._places: dict[TokenId, str] = {}

    def forget(self) -> None:
        """Ask the store again about everybody: something was revoked."""
        self._cache.clear()

    def used_at(self, key: str, noted_ns: int | None) -> int | None:
        """Return when this token or session was last used: what was noted, or what is not written down yet."""
        return self._used.get(key, noted_ns)

    def used_from(self, token_id: TokenId, noted: str | None) -> str | None:
        """Return the address from where this token was last used."""
        return self._places.get(token_id, noted)

    async def whose(self, secret: str, address: str = "", project_id: str = "") -> Principal:
        """Return the owner of this token or session; raises Unauthenticated. address: from where it asks. project_id:
        the project in which it is to act; empty: its own. Raises Forbidden where it acts in its own alone, NotFound
        where its user may not act there."""
        if secret.startswith(SESSION_PREFIX):
            return await self._acting_in(await self.authenticate_session(secret), secret, project_id)
        principal = await self.authenticate(secret)
        if address:
            self._places[principal.token_id] = address[:64]
        return await self._acting_in(principal, secret, project_id)

    async def _acting_in(self, principal: Principal, secret: str, project_id: str) -> Principal:
        if project_id in ("", principal.account_id):
            return principal
        if principal.session_id is None or not principal.has_all:
            raise Forbidden(
                f"This token acts in the project {principal.account_name} alone. Sign in, or use a token of the other "
                "project.",
                subject=principal.account_id,
            )
        return await self._known(
            f"{secret} {project_id[:SECRET_CHARS_MAX]}", lambda uow, _: _in_project(uow, principal, project_id)
        )

    async def authenticate(self, token: str) -> Principal:
        """Return the owner of this token; raises Unauthenticated for one that is unknown, revoked or expired."""
        if not token.startswith("wt_") or len(token) > SECRET_CHARS_MAX:
            raise Unauthenticated
        principal = await self._known(token, self._principal)
        if self._clock.wall_ns() >= principal.expires_at_ns:
            raise Unauthenticated("The token has expired. Sign in with a new one.")
        self._used[principal.token_id] = self._clock.wall_ns()
        return principal

    async def authenticate_session(self, secret: str) -> Principal:
        """Return the owner of this browser's session; raises Unauthenticated for a session that is unknown, signed
        out or over."""
        if not secret.startswith(SESSION_PREFIX) or len(secret) > SECRET_CHARS_MAX:
            raise Unauthenticated
        principal = await self._known(secret, self._principal_of_session)
        assert principal.session_id is not None
        if self._clock.wall_ns() >= principal.expires_at_ns:
            raise Unauthenticated("The session is over. Sign in again.")
        self._used[principal.token_id] = self._used[principal.session_id] = self._clock.wall_ns()
        return principal

    async def _known(self, secret: str, read: Callable[[UnitOfWork, bytes], Principal]) -> Principal:
        digest = hashlib.sha256(secret.encode()).digest()
        now_ns = self._clock.wall_ns()
        kept = self._cache.get(digest)
        if kept is not None and kept[0] > now_ns:
            return kept[1]
        principal = await self._store.read(lambda uow: read(uow, digest))
        self._cache[digest] = (now_ns + CACHE_LIFE_NS, principal)
        while len(self._cache) > CACHE_MAX:
            self._cache.popitem(last=False)
        return principal

    def _principal(self, uow: UnitOfWork, digest: bytes) -> Principal:
        return self._principal_of(uow, uow[TokenRepository].by_hash(digest))

    def _principal_of(self, uow: UnitOfWork, token: ApiToken | None) -> Principal:
        account = uow[AccountRepository].get(token.account_id) if token is not None else None
        if token is None or account is None:
            raise Unauthenticated
        if token.revoked_at_ns is not None:
            raise Unauthenticated("This token was revoked. Sign in again.")
        if account.state is AccountState.SUSPENDED:
            raise Forbidden(f"The account {account.name} is suspended. Ask an operator of this market.")
        if account.state is AccountState.DELETED:
            raise Unauthenticated(f"The project {account.name} was deleted. Sign in again.")
        found = Principal(
            account.id,
            account.name,
            account.roles & token.roles,
            token.id,
            token.name,
            token.expires_at_ns,
            organisation_id=account.organisation_id,
            may=account.roles & MARKET_ROLES,
            spenders=(token.id, *uow[TokenRepository].makers(token)),
        )
        if token.service_id is not None:
            service = uow[ServiceAccountRepository].get(token.service_id)
            if service is None:
                raise Unauthenticated("This service account was removed. Ask an admin of the project.")
            roles = service_roles(service, account) & token.roles
            return replace(found, roles=roles, service_id=service.id, user_name=service.name, spenders=(service.id,))
        if token.user_id is None:
            return found
        user = uow[UserRepository].get(token.user_id)
        if user is None or user.disabled_at_ns is not None:
            raise Unauthenticated("This user is disabled. Ask an operator of this market.")
        roles = standing(uow, user, account)
        if not roles:
            raise Unauthenticated(f"You are no longer a member of the project {account.name}.")
        has_all = token.roles == ALL_ROLES
        return replace(found, roles=roles & token.roles, user_id=user.id, user_name=user.name, has_all=has_all)

    def _principal_of_session(self, uow: UnitOfWork, digest: bytes) -> Principal:
        session = uow[SessionRepository].by_hash(digest)
        if session is None or session.revoked_at_ns is not None:
            raise Unauthenticated("You are signed out. Sign in again.")
        used_ns = self._used.get(session.id, session.last_used_at_ns)
        if uow.now_wall_ns - used_ns > SESSION_IDLE_NS:
            raise Unauthenticated("The session was not used for three days. Sign in again.")
        principal = self._principal_of(uow, uow[TokenRepository].get(session.token_id))
        ends_ns = min(principal.expires_at_ns, session.expires_at_ns)
        return replace(principal, session_id=session.id, expires_at_ns=ends_ns, proved_at_ns=session.proved_at_ns)

    async def note_use(self) -> None:
        """Write down when tokens and sessions were last used."""
        used, self._used = self._used, {}
        places, self._places = self._places, {}
        if not used:
            return

        def note(uow: UnitOfWork) -> None:
            for key, at_ns in used.items():
                if key.startswith("session"):
                    uow[SessionRepository].used(SessionId(key), at_ns)
                else:
                    uow[TokenRepository].used(TokenId(key), at_ns, places.get(TokenId(key)))

        await self._store.write(note, name="token.used")

    async def sign_in(self, token: str, browser: str, address: str = "") -> tuple[Session, str, Principal]:
        """A session for a browser that has this token, and its secret, which is told this once."""
        principal = await self.authenticate(token)
        if principal.service_id is not None:
            raise Forbidden("A service account does not sign in to the console. Sign in as a user.")

        def make(uow: UnitOfWork) -> tuple[Session, str]:
            now_ns, sessions = uow.now_wall_ns, uow[SessionRepository]
            have = (
                sessions.count(principal.account_id, now_ns)
                if principal.user_id is None
                else sessions.count_of(principal.user_id, now_ns, now_ns - SESSION_IDLE_NS)
            )
            decide.check_number(principal, have, decide.SESSIONS_MAX, "sessions", "End some of them first.")
            return begin_session(uow, principal, browser, address)

        session, secret = await self._store.write(make, name="session.begin")
        return session, secret, principal

    async def list_sessions(
        self, principal: Principal, after: str = "", limit: int = 100
    ) -> Sequence[tuple[Session, str]]:
        """The sessions that still hold, each with its token's name: the user's in every project, and of a project's own
        token the project's."""

        def read(uow: UnitOfWork) -> list[tuple[Session, str]]:
            names: dict[TokenId, str] = {}

            def page(last: Session | None, size: int) -> Sequence[Session]:
                idle_ns, position = uow.now_wall_ns - SESSION_IDLE_NS, after if last is None else last.id
                whose = principal.account_id, principal.user_id
                return uow[SessionRepository].list(*whose, uow.now_wall_ns, idle_ns, position, size)

            def is_reached(session: Session) -> bool:
                token = uow[TokenRepository].get(session.token_id)
                names[session.token_id] = token.name if token is not None else ""
                return token is not None and _reaches(principal, session, effective(uow, token))

            found, _ = sift(page, is_reached, limit, None)
            return [(session, names[session.token_id]) for session in found]

        listed = await self._store.read(read)
        return [
            (replace(session, last_used_at_ns=self._used.get(session.id, session.last_used_at_ns)), name)
            for session, name in listed
        ]

    async def end_session(self, principal: Principal, session_id: SessionId) -> None:
        """Sign a browser of the account out."""

        def end(uow: UnitOfWork) -> None:
            session = uow[SessionRepository].get(session_id)
            token = uow[TokenRepository].get(session.token_id) if session is not None else None
            if session is None or token is None or not _reaches(principal, session, effective(uow, token)):
                raise NotFound(subject=session_id)
            if session.revoked_at_ns is None:
                uow[SessionRepository].revoke(session_id, uow.now_wall_ns)
                uow[TokenRepository].revoke_sign_in(token.id, uow.now_wall_ns)
                uow.audit(principal.actor, "session.end", session_id)
            uow.after_commit(self._cache.clear)

        await self._store.write(end, name="session.end")


def _reaches(principal: Principal, session: Session, token: ApiToken) -> bool:
    """Return whether this caller may see and end a session: the user's own, or one of a token that it reaches."""
    is_own = principal.user_id is not None and session.user_id == principal.user_id
    return (is_own and principal.has_all) or decide.reaches(principal, token)


def effective(uow: UnitOfWork, token: ApiToken) -> ApiToken:
    """The token with the roles that its user or service account has now, of those that it may have."""
    account = uow[AccountRepository].get(token.account_id)
    if token.service_id is not None:
        service = uow[ServiceAccountRepository].get(token.service_id)
        roles = frozenset[Role]() if service is None or account is None else service_roles(service, account)
        return replace(token, roles=token.roles & roles)
    user = uow[UserRepository].get(token.user_id) if token.user_id is not None else None
    if user is None or account is None:
        return token
    return replace(token, roles=token.roles & standing(uow, user, account))


def begin_session(uow: UnitOfWork, principal: Principal, browser: str, address: str) -> tuple[Session, str]:
    """A session of this token, and its secret. address: from where."""
    secret = SESSION_PREFIX + new_secret(uow)
    session = Session(
        id=SessionId(uow.mint("session")),
        account_id=principal.account_id,
        token_id=principal.token_id,
        sha256=hashlib.sha256(secret.encode()).digest(),
        browser=decide.clean_name(browser, fallback="unknown"),
        created_at_ns=uow.now_wall_ns,
        last_used_at_ns=uow.now_wall_ns,
        expires_at_ns=min(principal.expires_at_ns, uow.now_wall_ns + SESSION_LIFE_NS),
        revoked_at_ns=None,
        user_id=principal.user_id,
        address=address[:64] or None,
        proved_at_ns=uow.now_wall_ns,
    )
    uow[SessionRepository].add(session)
    uow.audit(principal.actor, "session.begin", session.id, fields={"token": principal.token_id})
    return session, secret


def _in_project(uow: UnitOfWork, principal: Principal, project_id: str) -> Principal:
    """A user with all rights as the user acts in another project. Raises NotFound where the user may not."""
    account = uow[AccountRepository].get(AccountId(project_id))
    user = uow[UserRepository].get(principal.user_id or "")
    roles = standing(uow, user, account) if user is not None and account is not None else frozenset[Role]()
    if account is None or account.state is not AccountState.ACTIVE or not roles:
        raise NotFound("There is no such project. List them: windrow project ls", subject=project_id[:64])
    return replace(
        principal,
        account_id=account.id,
        account_name=account.name,
        roles=roles,
        organisation_id=account.organisation_id,
        may=account.roles & MARKET_ROLES,
    )


def standing(uow: UnitOfWork, user: User, account: Account) -> frozenset[Role]:
    """The roles of a user in a project; none: the user has nothing to do with it."""
    of_project = uow[OrganisationRepository].project_roles(user.id, account.id)
    is_member, of_organisation = False, None
    if account.organisation_id is not None:
        is_member, of_organisation = uow[OrganisationRepository].role(account.organisation_id, user.id)
    if not of_project and not is_member:
        return frozenset()
    return roles_in(user, account, of_organisation, of_project)


def new_secret(uow: UnitOfWork) -> str:
    """A text that nobody guesses."""
    return base64.urlsafe_b64encode(uow.random_bytes(SECRET_BYTES)).rstrip(b"=").decode()
