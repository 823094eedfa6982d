"""Reads and writes the tables of identity; rows go in and out as values of identity/model.py."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from sqlalchemy import ColumnElement, bindparam, delete, func, insert, select, update

from windrow_master.identity.model import (
    Account,
    ApiToken,
    DeviceCode,
    DeviceState,
    JoinToken,
    Member,
    MemberRole,
    Role,
    ServiceAccount,
    Session,
    SessionId,
    SignInLink,
    Standing,
)
from windrow_master.identity.tables import (
    accounts,
    api_tokens,
    device_codes,
    join_tokens,
    members,
    service_accounts,
    sessions,
    sign_in_links,
)
from windrow_master.store.prepared import Found, page
from windrow_master.store.repository import Repository
from windrow_proto.ids import AccountId, TokenId

# Made once: every host that connects is looked up, and the account of every cluster that is created.
_GET_ACCOUNT: Final = Found(select(accounts).where(accounts.c.id == bindparam("wanted")), lambda row: _account(row))
_GET_MEMBER: Final = Found(select(members).where(members.c.id == bindparam("wanted")), lambda row: _member(row))


def _roles(names: Sequence[str]) -> frozenset[Role]:
    return frozenset(Role(name) for name in names)


class AccountRepository(Repository):
    """Accounts."""

    def add(self, account: Account) -> None:
        """Add one."""
        self._connection.execute(insert(accounts).values(**asdict(account) | {"roles": sorted(account.roles)}))

    def get(self, account_id: AccountId) -> Account | None:
        """One account, or None."""
        return _GET_ACCOUNT.one(self._connection, {"wanted": account_id})

    def by_name(self, name: str) -> Account | None:
        """One account by its name, or None."""
        return self._one(accounts.c.name == name)

    def list(self, after: str = "", limit: int = 100) -> Sequence[Account]:
        """All of them, the oldest first."""
        query = select(accounts).where(accounts.c.id > after).order_by(accounts.c.id)
        return page(self._connection, query, _account, limit)

    def suspend(self, account_id: AccountId, at_ns: int | None) -> None:
        """Note since when it may do nothing; None: it may again."""
        self._connection.execute(update(accounts).where(accounts.c.id == account_id).values(suspended_at_ns=at_ns))

    def save(self, account: Account) -> None:
        """Write what changed."""
        values = asdict(account) | {"roles": sorted(account.roles)}
        self._connection.execute(update(accounts).where(accounts.c.id == account.id).values(**values))

    def deleted_of(self, organisation_id: str) -> Sequence[Account]:
        """Those of an organisation that were deleted and can be restored, the oldest first."""
        return self._deleted(accounts.c.organisation_id == organisation_id)

    def deleted_before(self, at_ns: int) -> Sequence[Account]:
        """Those that were deleted until then, of which something is still kept."""
        return self._deleted(accounts.c.deleted_at_ns <= at_ns)

    def _deleted(self, condition: Any) -> Sequence[Account]:
        is_kept = accounts.c.deleted_at_ns.is_not(None) & accounts.c.purged_at_ns.is_(None)
        query = select(accounts).where(condition, is_kept).order_by(accounts.c.id)
        return [_account(row) for row in self._connection.execute(query).mappings()]

    def first(self) -> Account | None:
        """The oldest account: the one that `windrow up` made."""
        return self._one(accounts.c.id.is_not(None))

    def _one(self, condition: Any) -> Account | None:
        query = select(accounts).where(condition).order_by(accounts.c.created_at_ns, accounts.c.id).limit(1)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _account(row)


def _account(row: Mapping[Any, Any]) -> Account:
    return Account(**dict(row) | {"roles": _roles(row["roles"])})


class SignInLinkRepository(Repository):
    """Single-use ways into accounts, by hash."""

    def add(self, link: SignInLink) -> None:
        """Add one."""
        self._connection.execute(insert(sign_in_links).values(**asdict(link)))

    def by_hash(self, sha256: bytes) -> SignInLink | None:
        """The link whose secret has this hash, used and expired ones too."""
        query = select(sign_in_links).where(sign_in_links.c.sha256 == sha256)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else SignInLink(**dict(row) | {"sha256": bytes(row["sha256"])})

    def use(self, link_id: str, at_ns: int) -> None:
        """Mark it used, once and for ever."""
        is_it = (sign_in_links.c.id == link_id) & sign_in_links.c.used_at_ns.is_(None)
        self._connection.execute(update(sign_in_links).where(is_it).values(used_at_ns=at_ns))

    def forget(self, account_id: AccountId) -> None:
        """Remove those of an account: none of them opens it any more."""
        self._connection.execute(delete(sign_in_links).where(sign_in_links.c.account_id == account_id))

    def forget_all(self) -> None:
        """Remove all of them."""
        self._connection.execute(delete(sign_in_links))

    def forget_of(self, token_id: TokenId) -> None:
        """Remove those that this token asked for and nobody has used."""
        is_open = (sign_in_links.c.made_by == token_id) & sign_in_links.c.used_at_ns.is_(None)
        self._connection.execute(delete(sign_in_links).where(is_open))

    def forget_made_by(self, account_id: AccountId) -> None:
        """Remove those that any token of this account asked for, to whichever account, and nobody has used."""
        its = select(api_tokens.c.id).where(api_tokens.c.account_id == account_id)
        is_open = sign_in_links.c.made_by.in_(its) & sign_in_links.c.used_at_ns.is_(None)
        self._connection.execute(delete(sign_in_links).where(is_open))


class TokenRepository(Repository):
    """API tokens, by hash."""

    def add(self, token: ApiToken) -> None:
        """Add one."""
        self._connection.execute(insert(api_tokens).values(**asdict(token) | {"roles": sorted(token.roles)}))

    def by_hash(self, sha256: bytes) -> ApiToken | None:
        """The token whose text has this hash, revoked or expired ones too."""
        row = self._connection.execute(select(api_tokens).where(api_tokens.c.sha256 == sha256)).mappings().one_or_none()
        return None if row is None else _token(row)

    def get(self, token_id: TokenId) -> ApiToken | None:
        """One token, or None."""
        row = self._connection.execute(select(api_tokens).where(api_tokens.c.id == token_id)).mappings().one_or_none()
        return None if row is None else _token(row)

    def list(self, account_id: AccountId, after: str = "", limit: int = 100) -> Sequence[ApiToken]:
        """Tokens of an account that are not revoked, oldest first, without those of sign-ins."""
        query = (
            select(api_tokens)
            .where(
                api_tokens.c.account_id == account_id,
                api_tokens.c.revoked_at_ns.is_(None),
                api_tokens.c.is_sign_in.is_(False),
                api_tokens.c.id > after,
            )
            .order_by(api_tokens.c.id)
        )
        return page(self._connection, query, _token, limit)

    def count(self, account_id: AccountId, now_ns: int, user_id: str | None = None) -> int:
        """Return how many of an account are worth something; of this user, where one is given."""
        is_good = api_tokens.c.revoked_at_ns.is_(None) & (api_tokens.c.expires_at_ns > now_ns)
        is_good &= api_tokens.c.is_sign_in.is_(False)
        if user_id is not None:
            is_good &= api_tokens.c.user_id == user_id
        query = select(func.count()).select_from(api_tokens).where(api_tokens.c.account_id == account_id, is_good)
        return int(self._connection.scalar(query) or 0)

    def revoke(self, token_id: TokenId, now_ns: int) -> None:
        """Make it worthless from now on."""
        self._connection.execute(update(api_tokens).where(api_tokens.c.id == token_id).values(revoked_at_ns=now_ns))

    def revoke_sign_in(self, token_id: TokenId, now_ns: int) -> None:
        """Make it worthless if it was made by a sign-in."""
        is_it = (api_tokens.c.id == token_id) & api_tokens.c.is_sign_in.is_(True)
        self._connection.execute(update(api_tokens).where(is_it).values(revoked_at_ns=now_ns))

    def ids_of_user(self, user_id: str, accounts_of: Sequence[AccountId] | None = None) -> Sequence[TokenId]:
        """Those of a user that act, or have acted, in these accounts; None: in any."""
        is_its = api_tokens.c.user_id == user_id
        if accounts_of is not None:
            is_its &= api_tokens.c.account_id.in_(accounts_of)
        return [TokenId(row[0]) for row in self._connection.execute(select(api_tokens.c.id).where(is_its))]

    def ids_of_account(self, account_id: AccountId) -> Sequence[TokenId]:
        """Those of an account that are not revoked."""
        is_its = (api_tokens.c.account_id == account_id) & api_tokens.c.revoked_at_ns.is_(None)
        return [TokenId(row[0]) for row in self._connection.execute(select(api_tokens.c.id).where(is_its))]

    def forget_person(self, user_id: str) -> None:
        """Remove from those of a user what tells of a person: names, and the addresses from where they were used."""
        values = {"name": "", "last_used_address": None}
        self._connection.execute(update(api_tokens).where(api_tokens.c.user_id == user_id).values(**values))

    def of_service(self, service_id: str, now_ns: int) -> Sequence[ApiToken]:
        """Those of a service account that are worth something, oldest first."""
        is_good = api_tokens.c.revoked_at_ns.is_(None) & (api_tokens.c.expires_at_ns > now_ns)
        query = select(api_tokens).where(api_tokens.c.service_id == service_id, is_good).order_by(api_tokens.c.id)
        return [_token(row) for row in self._connection.execute(query).mappings()]

    def end(self, token_id: TokenId, at_ns: int) -> None:
        """Let it expire then."""
        self._connection.execute(update(api_tokens).where(api_tokens.c.id == token_id).values(expires_at_ns=at_ns))

    def makers(self, token: ApiToken) -> Sequence[TokenId]:
        """The tokens by which this one was made, the nearest first. All are kept for as long as it is."""
        found: list[TokenId] = []
        maker = token.made_by
        while maker and maker not in found:
            found.append(maker)
            maker = self._connection.scalar(select(api_tokens.c.made_by).where(api_tokens.c.id == maker))
        return found

    def made_by(self, token_id: TokenId) -> Sequence[TokenId]:
        """The tokens that this one asked for, and those that they did, without those that are revoked."""
        found: dict[TokenId, bool] = {}
        asked = [token_id]
        while asked:
            query = select(api_tokens.c.id, api_tokens.c.revoked_at_ns).where(api_tokens.c.made_by.in_(asked))
            rows = [row for row in self._connection.execute(query) if row[0] not in found]
            found |= {TokenId(row[0]): row[1] is None for row in rows}
            asked = [TokenId(row[0]) for row in rows]
        return [one for one, is_good in found.items() if is_good]

    def used(self, token_id: TokenId, at_ns: int, address: str | None) -> None:
        """Note when and from where it was last used; the note only moves on. address: None: not known."""
        is_older = api_tokens.c.last_used_at_ns.is_(None) | (api_tokens.c.last_used_at_ns < at_ns)
        is_older &= api_tokens.c.revoked_at_ns.is_(None)  # of a user who was deleted nothing is written down any more
        values = {"last_used_at_ns": at_ns} | ({} if address is None else {"last_used_address": address})
        self._connection.execute(update(api_tokens).where(api_tokens.c.id == token_id, is_older).values(**values))


def _token(row: Mapping[Any, Any]) -> ApiToken:
    return ApiToken(**dict(row) | {"roles": _roles(row["roles"]), "sha256": bytes(row["sha256"])})


class SessionRepository(Repository):
    """Sessions of browsers, by hash."""

    def add(self, session: Session) -> None:
        """Add one."""
        self._connection.execute(insert(sessions).values(**asdict(session)))

    def by_hash(self, sha256: bytes) -> Session | None:
        """The session whose secret has this hash, ended ones too."""
        return self._one(sessions.c.sha256 == sha256)

    def get(self, session_id: SessionId) -> Session | None:
        """One session, or None."""
        return self._one(sessions.c.id == session_id)

    def count(self, account_id: AccountId, now_ns: int) -> int:
        """Return how many of an account have neither ended nor expired."""
        is_good = sessions.c.revoked_at_ns.is_(None) & (sessions.c.expires_at_ns > now_ns)
        query = select(func.count()).select_from(sessions).where(sessions.c.account_id == account_id, is_good)
        return int(self._connection.scalar(query) or 0)

    def count_of(self, user_id: str, now_ns: int, idle_since_ns: int) -> int:
        """Return how many of a user still hold."""
        is_good = sessions.c.revoked_at_ns.is_(None) & (sessions.c.expires_at_ns > now_ns)
        is_good &= sessions.c.last_used_at_ns > idle_since_ns
        query = select(func.count()).select_from(sessions).where(sessions.c.user_id == user_id, is_good)
        return int(self._connection.scalar(query) or 0)

    def of_user(self, user_id: str) -> Sequence[Session]:
        """Those of a user that have not been ended."""
        query = select(sessions).where(sessions.c.user_id == user_id, sessions.c.revoked_at_ns.is_(None))
        return [_session(row) for row in self._connection.execute(query).mappings()]

    def forget_user(self, user_id: str) -> None:
        """Remove those of a user."""
        self._connection.execute(delete(sessions).where(sessions.c.user_id == user_id))

    def move(self, session_id: SessionId, account_id: AccountId, token_id: TokenId) -> None:
        """Let it act in another account, with a token of that one."""
        values = {"account_id": account_id, "token_id": token_id}
        self._connection.execute(update(sessions).where(sessions.c.id == session_id).values(**values))

    def list(
        self, account_id: AccountId, user_id: str | None, now_ns: int, idle_since_ns: int, after: str, limit: int
    ) -> Sequence[Session]:
        """Sessions of an account, and of a user in any account, that still hold, oldest first."""
        is_its = sessions.c.account_id == account_id
        query = (
            select(sessions)
            .where(
                is_its if user_id is None else is_its | (sessions.c.user_id == user_id),
                sessions.c.revoked_at_ns.is_(None),
                sessions.c.expires_at_ns > now_ns,
                sessions.c.last_used_at_ns > idle_since_ns,
                sessions.c.id > after,
            )
            .order_by(sessions.c.id)
        )
        return page(self._connection, query, _session, limit)

    def revoke(self, session_id: SessionId, now_ns: int) -> None:
        """Make it worthless from now on."""
        self._connection.execute(update(sessions).where(sessions.c.id == session_id).values(revoked_at_ns=now_ns))

    def end_all(self, now_ns: int) -> None:
        """End all sessions, with the tokens that are theirs alone."""
        is_open = sessions.c.revoked_at_ns.is_(None)
        is_its = api_tokens.c.id.in_(select(sessions.c.token_id).where(is_open)) & api_tokens.c.is_sign_in
        is_its &= api_tokens.c.revoked_at_ns.is_(None)
        self._connection.execute(update(api_tokens).where(is_its).values(revoked_at_ns=now_ns))
        self._connection.execute(update(sessions).where(is_open).values(revoked_at_ns=now_ns))

    def revoke_of(self, token_id: TokenId, now_ns: int) -> None:
        """End every session that was begun with this token."""
        self._connection.execute(
            update(sessions)
            .where(sessions.c.token_id == token_id, sessions.c.revoked_at_ns.is_(None))
            .values(revoked_at_ns=now_ns)
        )

    def prove(self, session_id: SessionId, at_ns: int) -> None:
        """Note when its user last showed a password, a code or a token."""
        self._connection.execute(update(sessions).where(sessions.c.id == session_id).values(proved_at_ns=at_ns))

    def used(self, session_id: SessionId, at_ns: int) -> None:
        """Note when it was last used; the note only moves on."""
        self._connection.execute(
            update(sessions)
            .where(sessions.c.id == session_id, sessions.c.last_used_at_ns < at_ns)
            .values(last_used_at_ns=at_ns)
        )

    def _one(self, condition: Any) -> Session | None:
        row = self._connection.execute(select(sessions).where(condition)).mappings().one_or_none()
        return None if row is None else _session(row)


def _session(row: Mapping[Any, Any]) -> Session:
    return Session(**dict(row) | {"sha256": bytes(row["sha256"])})


class ServiceAccountRepository(Repository):
    """Service accounts of projects."""

    def add(self, service: ServiceAccount) -> None:
        """Add one."""
        self._connection.execute(insert(service_accounts).values(**asdict(service) | {"roles": sorted(service.roles)}))

    def get(self, service_id: str) -> ServiceAccount | None:
        """One service account, or None."""
        return self._one(service_accounts.c.id == service_id)

    def by_name(self, account_id: AccountId, name: str) -> ServiceAccount | None:
        """The one of this name in a project, or None."""
        return self._one((service_accounts.c.account_id == account_id) & (service_accounts.c.name == name))

    def list(self, account_id: AccountId, after: str, limit: int) -> Sequence[ServiceAccount]:
        """Those of a project, the oldest first."""
        is_its = (service_accounts.c.account_id == account_id) & (service_accounts.c.id > after)
        query = select(service_accounts).where(is_its).order_by(service_accounts.c.id)
        return page(self._connection, query, _service, limit)

    def count(self, account_id: AccountId) -> int:
        """Return how many a project has."""
        query = select(func.count()).select_from(service_accounts).where(service_accounts.c.account_id == account_id)
        return int(self._connection.scalar(query) or 0)

    def forget_account(self, account_id: AccountId) -> None:
        """Remove those of a project."""
        self._connection.execute(delete(service_accounts).where(service_accounts.c.account_id == account_id))

    def remove(self, service_id: str) -> None:
        """Remove one."""
        self._connection.execute(delete(service_accounts).where(service_accounts.c.id == service_id))

    def _one(self, condition: Any) -> ServiceAccount | None:
        row = self._connection.execute(select(service_accounts).where(condition)).mappings().one_or_none()
        return None if row is None else _service(row)


def _service(row: Mapping[Any, Any]) -> ServiceAccount:
    return ServiceAccount(**dict(row) | {"roles": _roles(row["roles"])})


class DeviceRepository(Repository):
    """Requests of devices to be signed in, by hash."""

    def save(self, code: DeviceCode) -> None:
        """Add or replace one."""
        self.remove(code.id)
        self._connection.execute(insert(device_codes).values(**asdict(code) | {"state": code.state.value}))

    def by_device(self, sha256: bytes) -> DeviceCode | None:
        """The one whose device code has this hash, an expired one too."""
        return self._one(device_codes.c.device_sha256 == sha256)

    def by_user(self, sha256: bytes) -> DeviceCode | None:
        """The one whose user code has this hash, an expired one too."""
        return self._one(device_codes.c.user_sha256 == sha256)

    def count(self, network: str | None = None) -> int:
        """Return how many there are; from this network, where one is given."""
        query = select(func.count()).select_from(device_codes)
        if network is not None:
            query = query.where(device_codes.c.network == network)
        return int(self._connection.scalar(query) or 0)

    def remove(self, code_id: str) -> None:
        """Remove one."""
        self._connection.execute(delete(device_codes).where(device_codes.c.id == code_id))

    def forget_user(self, user_id: str) -> None:
        """Remove those that a user approved or refused."""
        its = select(api_tokens.c.id).where(api_tokens.c.user_id == user_id)
        self._connection.execute(delete(device_codes).where(device_codes.c.approved_by.in_(its)))

    def forget_expired(self, now_ns: int) -> None:
        """Remove those that have expired."""
        self._connection.execute(delete(device_codes).where(device_codes.c.expires_at_ns <= now_ns))

    def _one(self, condition: Any) -> DeviceCode | None:
        row = self._connection.execute(select(device_codes).where(condition)).mappings().one_or_none()
        if row is None:
            return None
        hashes = {name: bytes(row[name]) for name in ("device_sha256", "user_sha256")}
        return DeviceCode(**dict(row) | hashes | {"state": DeviceState(row["state"])})


class JoinTokenRepository(Repository):
    """Join tokens, by hash."""

    def add(self, token: JoinToken) -> None:
        """Add one."""
        self._connection.execute(insert(join_tokens).values(**asdict(token) | {"role": token.role.value}))

    def by_hash(self, sha256: bytes) -> JoinToken | None:
        """The join token whose text has this hash."""
        query = select(join_tokens).where(join_tokens.c.sha256 == sha256)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _join_token(row)

    def get(self, token_id: TokenId) -> JoinToken | None:
        """One join token, or None."""
        row = self._connection.execute(select(join_tokens).where(join_tokens.c.id == token_id)).mappings().one_or_none()
        return None if row is None else _join_token(row)

    def list(self, account_id: AccountId, now_ns: int, after: str = "", limit: int = 100) -> Sequence[JoinToken]:
        """Join tokens of an account that can still be used, oldest first."""
        query = (
            select(join_tokens)
            .where(
                join_tokens.c.account_id == account_id,
                join_tokens.c.used_by.is_(None),
                join_tokens.c.revoked_at_ns.is_(None),
                join_tokens.c.expires_at_ns > now_ns,
                join_tokens.c.id > after,
            )
            .order_by(join_tokens.c.id)
        )
        return page(self._connection, query, _join_token, limit)

    def count(self, account_id: AccountId, now_ns: int) -> int:
        """Return how many of an account can still be used."""
        is_good = (
            join_tokens.c.used_by.is_(None)
            & join_tokens.c.revoked_at_ns.is_(None)
            & (join_tokens.c.expires_at_ns > now_ns)
        )
        query = select(func.count()).select_from(join_tokens).where(join_tokens.c.account_id == account_id, is_good)
        return int(self._connection.scalar(query) or 0)

    def use(self, token_id: TokenId, member_id: str, now_ns: int) -> None:
        """Mark it used, once and for ever."""
        self._connection.execute(
            update(join_tokens)
            .where(join_tokens.c.id == token_id, join_tokens.c.used_by.is_(None))
            .values(used_at_ns=now_ns, used_by=member_id)
        )

    def revoke(self, token_id: TokenId, now_ns: int) -> None:
        """Make it worthless from now on."""
        self._connection.execute(update(join_tokens).where(join_tokens.c.id == token_id).values(revoked_at_ns=now_ns))

    def revoke_all(self, account_id: AccountId, now_ns: int) -> None:
        """Make those of an account worthless."""
        self._revoke(join_tokens.c.account_id == account_id, now_ns)

    def revoke_of(self, token_id: TokenId, now_ns: int) -> None:
        """Make those worthless that this API token asked for."""
        self._revoke(join_tokens.c.made_by == token_id, now_ns)

    def revoke_of_purchase(self, purchase_id: str, now_ns: int) -> None:
        """Make those worthless that were made for this purchase."""
        self._revoke(join_tokens.c.purchase_id == purchase_id, now_ns)

    def _revoke(self, is_its: ColumnElement[bool], now_ns: int) -> None:
        is_good = join_tokens.c.revoked_at_ns.is_(None)
        self._connection.execute(update(join_tokens).where(is_its & is_good).values(revoked_at_ns=now_ns))


def _join_token(row: Mapping[Any, Any]) -> JoinToken:
    return JoinToken(**dict(row) | {"role": MemberRole(row["role"]), "sha256": bytes(row["sha256"])})


class MemberRepository(Repository):
    """Hosts and Accesses: keys, certificates, standing."""

    def save(self, member: Member) -> None:
        """Add or replace one."""
        values: Mapping[str, Any] = asdict(member) | {
            "role": member.role.value,
            "standing": member.standing.value,
            "addresses": list(member.addresses),
        }
        done = self._connection.execute(update(members).where(members.c.id == member.id).values(**values))
        if done.rowcount == 0:
            self._connection.execute(insert(members).values(**values))

    def get(self, member_id: str) -> Member | None:
        """One member, or None."""
        return _GET_MEMBER.one(self._connection, {"wanted": member_id})

    def by_key(self, sign_public: bytes) -> Member | None:
        """The member that holds this Ed25519 key."""
        query = select(members).where(members.c.sign_public == sign_public)
        row = self._connection.execute(query).mappings().one_or_none()
        return None if row is None else _member(row)

    def list(self, role: MemberRole) -> Sequence[Member]:
        """Every member of this kind, in the order of joining."""
        query = select(members).where(members.c.role == role.value).order_by(members.c.id)
        return [_member(row) for row in self._connection.execute(query).mappings()]

    def restored(self, now_ns: int) -> None:
        """These records come from a backup, which may lack renewals."""
        self._connection.execute(update(members).values(restored_at_ns=now_ns))

    def banned(self) -> Sequence[str]:
        """The ids of those whose certificates are not honoured."""
        query = select(members.c.id).where(members.c.standing != Standing.GOOD.value).order_by(members.c.id)
        return [str(row[0]) for row in self._connection.execute(query)]


def _member(row: Mapping[Any, Any]) -> Member:
    return Member(
        **dict(row)
        | {
            "role": MemberRole(row["role"]),
            "standing": Standing(row["standing"]),
            "addresses": tuple(row["addresses"]),
            "sign_public": bytes(row["sign_public"]),
            "csr_sha256": bytes(row["csr_sha256"]),
        }
    )
