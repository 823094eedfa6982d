"""The service of identity providers: operators configure them, people sign in by them and link them with their user.

start ─▶ the provider's page ─▶ back with a code ─▶ finish: exchange, checks ─▶ a session, or a link
"""

import hmac
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from windrow_master.identity import membership, providers
from windrow_master.identity.model import Principal, Role, Session
from windrow_master.identity.oidc import Asked, Metadata, OpenIdClient, check_issuer, sign_in_url
from windrow_master.identity.people import Projects, User, UserId
from windrow_master.identity.people_lookup import Project, named, own_user_of, whole_user_of
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.provider_repository import ProviderRepository
from windrow_master.identity.providers import NOTHING, Claims, Grants, Identity, Provider
from windrow_master.identity.sessions import Asking, new_secret
from windrow_master.identity.sign_in import begin_for
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.conditions import ConditionCode, Stated
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, NotFound, Unauthenticated, Unavailable
from windrow_proto.ids import AccountId
from windrow_proto.networks import network_of
from windrow_proto.ports import Clock
from windrow_proto.sealed import SealKey, seal
from windrow_proto.units import HOUR, MINUTE

T = TypeVar("T")
Prove = Callable[[Principal, User, str | None], Awaitable[None]]
"""Raises Forbidden unless it is the user's password."""

SESSION_LIFE_NS: Final = 8 * HOUR
"""Of a session that a provider let in: whom the provider disables is out after it, and groups count again."""
FLOW_LIFE_NS: Final = 10 * MINUTE
FLOWS_MAX: Final = 10_000
"""Sign-ins under way."""
AWAY_NS: Final = HOUR
"""For so long after its last failure a provider is told to be away."""
PURPOSE: Final = "client secret of "
"""For which a client's secret is sealed; the provider's name follows."""
_NONE: Final = "There is no such identity provider. List them: windrow identity-provider ls"


@dataclass(frozen=True, slots=True)
class Started:
    """A sign-in that has begun. secret: kept by the browser that began it, without which its code is worth nothing."""

    url: str
    state: str
    secret: str


@dataclass(frozen=True, slots=True)
class Came:
    """What a browser brings back from a provider, and its own secret. issuer: as RFC 9207 has it."""

    provider: str
    state: str
    secret: str
    code: str | None
    issuer: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A provider, with the name of its organisation, and its groups' roles with the names of the projects."""

    provider: Provider
    organisation: str | None
    groups: Mapping[str, "GrantsView"]


@dataclass(frozen=True, slots=True)
class GrantsView:
    """Roles, with the names of the projects."""

    role: Role | None
    projects: Sequence[Project]


@dataclass(frozen=True, slots=True)
class Tested:
    """What a provider says of itself, and how many keys it has."""

    metadata: Metadata
    keys: int


@dataclass(frozen=True, slots=True)
class Flow:
    """A sign-in under way. network: that it was begun from."""

    asked: Asked
    secret: str
    user_id: str | None
    network: str
    ends_at_ns: int


class Flows:
    """Sign-ins under way, by their states."""

    def __init__(self, most: int = FLOWS_MAX) -> None:
        self._most = most
        self._flows = dict[str, Flow]()

    def add(self, state: str, flow: Flow) -> None:
        """Keep one. Where there are too many, the network that has begun most of them loses the older half of its own:
        nobody displaces those of others."""
        self._flows[state] = flow
        if len(self._flows) > self._most:
            [(network, count)] = Counter(one.network for one in self._flows.values()).most_common(1)
            its = [each for each, one in self._flows.items() if one.network == network]
            for each in its[: -(-count // 2)]:
                del self._flows[each]

    def take(self, state: str) -> Flow | None:
        """One, which is then gone; None: there is none."""
        return self._flows.pop(state, None)


class ProviderService:
    """Identity providers of the installation."""

    def __init__(
        self, store: Store, clock: Clock, seal_key: SealKey, asking: Asking, client: OpenIdClient, prove: Prove
    ) -> None:
        self._store, self._clock, self._seal_key, self._asking = store, clock, seal_key, asking
        self._client, self._prove = client, prove
        self._flows = Flows()
        self._away: dict[str, tuple[str, int]] = {}

    # --- for operators -------------------------------------------------------------------------------------------

    async def all(self) -> Sequence[Provider]:
        """All, in the order of their names."""
        return await self._store.read(lambda uow: uow[ProviderRepository].all())

    async def views(self) -> Sequence[ProviderView]:
        """All, for operators."""
        return await self._store.read(lambda uow: [_view(uow, one) for one in uow[ProviderRepository].all()])

    async def save(self, principal: Principal, wanted: Provider, client_secret: str | None) -> ProviderView:
        """Add a provider, or change the one of this name. organisation_id and the projects of its groups: ids or names.
        client_secret: None keeps the one that there is. Raises InvalidInput, Conflict where issuer or organisation
        would change: its subjects would become other people."""

        def save(uow: UnitOfWork) -> ProviderView:
            repository = uow[ProviderRepository]
            provider = providers.check_settings(_with_ids(uow, wanted))
            before = repository.get(provider.name)
            if before is None and len(repository.all()) >= providers.PROVIDERS_MAX:
                raise Conflict(f"There are {providers.PROVIDERS_MAX} identity providers. Remove some first.")
            if before is not None and (before.issuer, before.organisation_id) != (
                provider.issuer,
                provider.organisation_id,
            ):
                said = f"{provider.name} keeps its issuer and its organisation. Take another name, or remove it first."
                raise Conflict(said, subject=provider.name)
            sealed = before.sealed if before is not None else None
            if client_secret is not None:
                sealed = seal(self._seal_key.public, client_secret.encode(), PURPOSE + provider.name)
            created_at_ns = uow.now_wall_ns if before is None else before.created_at_ns
            saved = replace(provider, sealed=sealed, created_at_ns=created_at_ns)
            repository.save(saved)
            fields = {"issuer": saved.issuer[:200]}
            uow.audit(principal.actor, "identity_provider.set", saved.name, fields=fields)
            theirs = [one for one, _ in uow[OrganisationRepository].projects(saved.organisation_id or "")]
            if theirs:
                said = f"The identity provider {saved.name} lets people into this organisation"
                uow.event("identity_provider.set", tuple(theirs), said, fields, principal.actor)
            return _view(uow, saved)

        view = await self._store.write(save, name="identity_provider.set")
        self._client.forget(view.provider)
        return view

    async def remove(self, principal: Principal, name: str) -> None:
        """Remove a provider; nobody signs in by it any more. Users stay, with the roles that they have."""

        def remove(uow: UnitOfWork) -> None:
            provider = _provider(uow, name)
            uow[ProviderRepository].remove(provider.name)
            uow.audit(principal.actor, "identity_provider.remove", provider.name)

        await self._store.write(remove, name="identity_provider.remove")
        self._away.pop(name, None)

    async def test(self, name: str) -> Tested:
        """Ask a provider for what it says of itself, and its keys. Raises Unavailable with what is wrong."""
        provider = await self._store.read(lambda uow: _provider(uow, name))
        self._client.forget(provider)
        metadata = await self._noting(provider, self._client.discover(provider))
        return Tested(metadata, len(list(await self._noting(provider, self._client.keys(provider, metadata)))))

    async def preview(self, name: str, groups: Sequence[str]) -> GrantsView:
        """The roles that somebody with these groups would have by them."""
        return await self._store.read(lambda uow: _roles(uow, _provider(uow, name), frozenset(groups)))

    def conditions(self) -> Iterator[Stated]:
        """The providers that did not answer as they should within the last hour."""
        for name, (said, at_ns) in self._away.items():
            if self._clock.wall_ns() - at_ns < AWAY_NS:
                yield ConditionCode.MASTER_PROVIDER_AWAY, f"{name}: {said}", at_ns

    # --- signing in ----------------------------------------------------------------------------------------------

    async def start(self, name: str, base: str, place: str) -> Started:
        """Begin to sign in by a provider. base: the address of this Master as the browser has it; place: that of the
        browser. Raises Unavailable while the provider does not answer."""
        return await self._start(name, base, place, None)

    async def finish(self, came: Came, browser: str, place: str) -> tuple[Session, str, Principal]:
        """A session of the user who has this identity, who is made where the provider may. Raises Unauthenticated,
        Forbidden, Conflict, Unavailable."""
        issuer, claims = await self._came(came, None)

        def enter(uow: UnitOfWork) -> tuple[Session, str, Principal] | Forbidden:
            provider = _same(uow, came.provider, issuer)
            identity = uow[ProviderRepository].identity(provider.name, claims.subject)
            identity = identity or _added(uow, provider, claims, _new_user(uow, provider, claims))
            user = uow[UserRepository].get(identity.user_id)
            if user is None or user.disabled_at_ns is not None:
                raise Unauthenticated("This user is disabled. Ask an operator of this market.")
            self._give(uow, provider, identity, providers.given(provider, claims.groups))
            try:
                return begin_for(uow, user, None, browser, place, SESSION_LIFE_NS)
            except Forbidden:
                # Returned, not raised: the user stays, so that an admin can give roles.
                return Forbidden(
                    f"You are known here as {user.name} now, and have no role in any project. Ask an admin of your "
                    "organisation for one, then sign in again."
                )

        entered = await self._store.write(enter, name="session.begin")
        if isinstance(entered, Forbidden):
            raise entered
        return entered

    # --- the own identities --------------------------------------------------------------------------------------

    async def identities(self, principal: Principal) -> Sequence[Identity]:
        """Those of the caller's user."""
        return await self._store.read(lambda uow: uow[ProviderRepository].identities_of(own_user_of(uow, principal).id))

    async def start_link(self, principal: Principal, name: str, password: str | None, base: str, place: str) -> Started:
        """Begin to link the caller's user with an identity. A user with a password gives it, another one has signed in
        of late. Raises Forbidden, SignInAgain."""
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        await self._prove(principal, user, password)
        return await self._start(name, base, place, user.id)

    async def finish_link(self, principal: Principal, came: Came) -> Identity:
        """Link the caller's user with the identity. Raises Conflict where it is another user's, or the user has one of
        this provider."""
        user_id = (await self._store.read(lambda uow: whole_user_of(uow, principal))).id
        issuer, claims = await self._came(came, user_id)

        def link(uow: UnitOfWork) -> Identity:
            user = whole_user_of(uow, principal)
            provider = _same(uow, came.provider, issuer)
            if uow[ProviderRepository].identity(provider.name, claims.subject) is not None:
                raise Conflict(f"This identity at {provider.name} is linked with a user already.")
            if _own(uow, user, provider.name) is not None:
                raise Conflict(f"You have an identity at {provider.name} already. Unlink that one first.")
            identity = _added(uow, provider, claims, user)
            return self._give(uow, provider, identity, providers.given(provider, claims.groups))

        return await self._store.write(link, name="identity.link")

    async def unlink(self, principal: Principal, name: str) -> None:
        """Take an identity from the caller's user, with the roles that its groups gave. Raises Conflict where the user
        could not sign in any more."""

        def unlink(uow: UnitOfWork) -> None:
            user = whole_user_of(uow, principal)
            identity = _own(uow, user, name)
            if identity is None:
                raise NotFound("You are not linked with an identity there.", subject=name[:64])
            if user.password is None and len(uow[ProviderRepository].identities_of(user.id)) == 1:
                raise Conflict("You could not sign in any more. Set a password first.")
            self._give(uow, _provider(uow, name), identity, NOTHING)
            uow[ProviderRepository].remove_identity(identity)
            uow.audit(principal.actor, "identity.unlink", user.id, fields={"provider": name})

        await self._store.write(unlink, name="identity.unlink")

    # --- inside --------------------------------------------------------------------------------------------------

    async def _start(self, name: str, base: str, place: str, user_id: str | None) -> Started:
        provider, state, secret, verifier, nonce = await self._store.read(
            lambda uow: (_provider(uow, name), new_secret(uow), new_secret(uow), new_secret(uow), new_secret(uow))
        )
        metadata = await self._noting(provider, self._client.discover(provider))
        asked = Asked(provider.name, metadata, f"{base}/oidc/{provider.name}", verifier, nonce)
        until_ns = self._clock.monotonic_ns() + FLOW_LIFE_NS
        self._flows.add(state, Flow(asked, secret, user_id, network_of(place), until_ns))
        return Started(sign_in_url(provider, asked, state), state, secret)

    async def _came(self, came: Came, user_id: str | None) -> tuple[str, Claims]:
        """The provider's issuer, and what it says of who came back from it. The provider is read again afterwards: its
        settings may change meanwhile."""
        flow = self._flows.take(came.state)  # it works once, whatever follows
        is_it = (
            flow is not None
            and hmac.compare_digest(flow.secret.encode(), came.secret.encode())
            and flow.asked.provider == came.provider
            and flow.user_id == user_id
            and self._clock.monotonic_ns() < flow.ends_at_ns
        )
        if flow is None or not is_it:
            raise Unauthenticated(
                "This sign-in was begun in another browser, was used, or took more than ten minutes. Begin again."
            )
        check_issuer(flow.asked.metadata, came.issuer)
        if came.code is None:
            raise Forbidden(f"{came.provider} did not let you in: {came.error or 'it gave no reason'}.")
        provider = await self._store.read(lambda uow: _same(uow, came.provider, flow.asked.metadata.issuer))
        secret = None
        if provider.sealed is not None:
            secret = self._seal_key.open(provider.sealed, PURPOSE + provider.name).decode()
        claims = await self._noting(provider, self._client.claims(provider, flow.asked, came.code, secret))
        return provider.issuer, claims

    async def _noting(self, provider: Provider, call: Awaitable[T]) -> T:
        """Note whether a provider answers as it should."""
        try:
            answer = await call
        except Unavailable as failed:
            self._away[provider.name] = failed.detail, self._clock.wall_ns()
            raise Unavailable(f"The identity provider {provider.name} cannot be used now. {failed.detail}") from None
        self._away.pop(provider.name, None)
        return answer

    def _give(self, uow: UnitOfWork, provider: Provider, identity: Identity, after: Grants) -> Identity:
        """Give the roles that groups give now, and take back what they gave before. A last owner stays one."""
        repository, user_id, before = uow[OrganisationRepository], identity.user_id, identity.granted
        if provider.organisation_id is not None:
            is_member, now = repository.role(provider.organisation_id, user_id)
            role = providers.role_after(now, before, after)
            try:
                others = repository.count(provider.organisation_id, Role.ORG_OWNER, but=user_id)
                membership.check_keeps_owner(now, role, others)
            except Conflict:
                role, after = now, replace(after, role=now)
            known = dict(repository.projects(provider.organisation_id))
            own = repository.projects_of(user_id, provider.organisation_id)
            changed = providers.project_roles_after(own, before, after)
            if role is not now or (changed and not is_member):
                repository.set_role(provider.organisation_id, user_id, role)
            for project, roles in changed.items():
                if project in known or project in own:  # also what was deleted, and may be restored
                    repository.set_project_roles(user_id, project, roles)
            if changed or role is not now:
                said = ",".join(f"{one}:{'+'.join(sorted(roles))}" for one, roles in changed.items())[:1_000]
                fields = {"role": role or "", "projects": said}
                uow.audit(f"identity_provider/{provider.name}", "member.change", user_id, fields=fields)
                uow.after_commit(self._asking.forget)
        used = replace(identity, granted=after, last_used_at_ns=uow.now_wall_ns)
        uow[ProviderRepository].save_identity(used)
        return used


def _provider(uow: UnitOfWork, name: str) -> Provider:
    found = uow[ProviderRepository].get(name)
    if found is None:
        raise NotFound(_NONE, subject=name[:64])
    return found


def _same(uow: UnitOfWork, name: str, issuer: str) -> Provider:
    """The provider of this name, unless it was removed meanwhile, and another one added by the same name."""
    found = _provider(uow, name)
    if found.issuer != issuer:
        raise NotFound(_NONE, subject=name[:64])
    return found


def _own(uow: UnitOfWork, user: User, provider: str) -> Identity | None:
    return next((one for one in uow[ProviderRepository].identities_of(user.id) if one.provider == provider), None)


def _new_user(uow: UnitOfWork, provider: Provider, claims: Claims) -> User:
    """A user for a person who comes for the first time, a member of the provider's organisation without any role. An
    address is never proof enough to become a user that there is."""
    providers.check_enters(provider, claims)
    if claims.address is not None and uow[UserRepository].by_address(claims.address) is not None:
        raise Conflict(
            f"There is a user with your address already. Sign in as that user, then link {provider.name} under "
            "Settings."
        )
    assert provider.organisation_id is not None, "check_settings wants one where users are made"
    if uow[OrganisationRepository].count(provider.organisation_id) >= membership.MEMBERS_MAX:
        raise Conflict(f"An organisation has at most {membership.MEMBERS_MAX:,} members.")
    user = User(UserId(uow.mint("user")), claims.name, uow.now_wall_ns, claims.address)
    uow[UserRepository].add(user)
    uow[OrganisationRepository].set_role(provider.organisation_id, user.id, None)
    uow.audit(f"identity_provider/{provider.name}", "user.make", user.id)
    return user


def _added(uow: UnitOfWork, provider: Provider, claims: Claims, user: User) -> Identity:
    identity = Identity(provider.name, claims.subject, user.id, claims.label, NOTHING, uow.now_wall_ns)
    uow[ProviderRepository].save_identity(identity)
    uow.audit(f"user/{user.id}", "identity.link", user.id, fields={"provider": provider.name})
    return identity


def _with_ids(uow: UnitOfWork, wanted: Provider) -> Provider:
    """The same with ids in place of names."""
    if wanted.organisation_id is None:
        return wanted
    repository = uow[OrganisationRepository]
    organisation = repository.get(wanted.organisation_id) or repository.by_name(wanted.organisation_id)
    if organisation is None:
        raise InvalidInput(
            f"organisation: There is no organisation {wanted.organisation_id[:64]}.", subject="organisation"
        )
    ids = {name: account_id for account_id, name in repository.projects(organisation.id)}

    def by_id(projects: Projects) -> Projects:
        found = {ids.get(one, AccountId(one)): roles for one, roles in projects.items()}
        if unknown := sorted(set(found) - set(ids.values())):
            said = f"groups: {unknown[0][:64]} is no project of {organisation.name}."
            raise InvalidInput(said, subject="groups")
        return found

    groups = {group: Grants(grants.role, by_id(grants.projects)) for group, grants in wanted.groups.items()}
    return replace(wanted, organisation_id=organisation.id, groups=groups)


def _view(uow: UnitOfWork, provider: Provider) -> ProviderView:
    found = uow[OrganisationRepository].get(provider.organisation_id or "")
    groups = {one: GrantsView(grants.role, named(uow, grants.projects)) for one, grants in provider.groups.items()}
    return ProviderView(provider, None if found is None else found.name, groups)


def _roles(uow: UnitOfWork, provider: Provider, groups: frozenset[str]) -> GrantsView:
    grants = providers.given(provider, groups)
    return GrantsView(grants.role, named(uow, grants.projects))
