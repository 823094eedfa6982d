"""The identity service: joins, renews, authenticates and keeps tokens; decides in decide.py, signs with the
authority."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, assert_never

from windrow_master.identity import decide
from windrow_master.identity.accounts import AccountRegistry, add_project_of_own, own_user
from windrow_master.identity.authority import Authority
from windrow_master.identity.devices import DeviceService
from windrow_master.identity.messages import AccountMade, CloneFound, HostJoined, StandingChanged
from windrow_master.identity.model import (
    ALL_ROLES,
    Account,
    AccountState,
    ApiToken,
    JoinAnswer,
    JoinRequest,
    JoinToken,
    Member,
    MemberRole,
    Principal,
    RenewRequest,
    Role,
    SignedRegions,
    Standing,
)
from windrow_master.identity.object_share_repository import ObjectShareRepository
from windrow_master.identity.object_share_service import ObjectShareService
from windrow_master.identity.oidc import OpenIdClient
from windrow_master.identity.passwords import Passwords
from windrow_master.identity.people_service import PeopleService
from windrow_master.identity.profiles import ProfileService
from windrow_master.identity.projects import ProjectService
from windrow_master.identity.provider_service import ProviderService
from windrow_master.identity.repository import (
    AccountRepository,
    JoinTokenRepository,
    MemberRepository,
    TokenRepository,
)
from windrow_master.identity.service_accounts import ServiceAccounts
from windrow_master.identity.sessions import TOKEN_LIFE_NS_MAX, Asking, effective, new_secret
from windrow_master.identity.sign_in import SignIn
from windrow_master.identity.tokens import issue_token, revoke_with_all
from windrow_master.mail.service import MailService
from windrow_master.outgoing import Outgoing
from windrow_master.sift import sift
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import (
    Banned,
    CertificateRefused,
    Forbidden,
    InvalidInput,
    JoinTokenRefused,
    NotFound,
    WindrowError,
)
from windrow_proto.ids import AccountId, HostId, TokenId
from windrow_proto.keys import (
    DOMAIN_JOIN,
    DOMAIN_REGIONS,
    DOMAIN_RENEW,
    public_key_sha256,
    verify_signature,
)
from windrow_proto.messages import AccessPoint, RegionMap
from windrow_proto.ports import Clock, Rng
from windrow_proto.sealed import SealKey
from windrow_proto.units import DAY, MILLISECOND, MINUTE
from windrow_proto.wire_link import encode_region_map

JOIN_TOKEN_LIFE_NS: Final = 15 * MINUTE
JOIN_TOKEN_LIFE_NS_MAX: Final = DAY
_KINDS: Final = {MemberRole.HOST: "a host", MemberRole.ACCESS: "a relay"}
FIRST_ORGANISATION: Final = "home"  # names
FIRST_PROJECT: Final = "default"
CA_HASH_HEX: Final = 32
"""As windrow_proto.enrol reads it."""


class IdentityService:
    """Accounts, tokens and members."""

    def __init__(
        self,
        store: Store,
        authority: Authority,
        clock: Clock,
        rng: Rng,
        access_points: Callable[[], tuple[AccessPoint, ...]],
        trunk_addresses: tuple[str, ...],
        mail: MailService,
        outgoing: Outgoing,
    ) -> None:
        """access_points: how agents find each Access now. trunk_addresses: HOST:PORT of this Master for Accesses."""
        self._store = store
        self._authority = authority
        self.seal_key: Final = SealKey.of(authority.signing)
        """The Master's own, for what the database keeps sealed."""
        self._clock = clock
        self._rng = rng
        self._backup_at_ns = store.read_now(lambda uow: uow.terms.backup_at_ns())
        self.asking = Asking(store, clock)
        self.accounts: Final = AccountRegistry(self.asking, self.ca_sha256[:CA_HASH_HEX])
        passwords = Passwords()
        self.sign_in: Final = SignIn(store, clock, self.seal_key, passwords)
        self.devices: Final = DeviceService(store, self.sign_in.delays)
        self.service_accounts: Final = ServiceAccounts(store, self.asking)
        secret_end = self.ca_sha256[:CA_HASH_HEX]
        self.mail: Final = mail
        self.object_shares: Final = ObjectShareService(store, clock)
        self.people: Final = PeopleService(store, self.asking, passwords, self.sign_in, mail, secret_end)
        self.projects: Final = ProjectService(store, self.asking)
        self.profiles: Final = ProfileService(store, self.asking, self.sign_in, passwords, mail, secret_end)
        self.providers: Final = ProviderService(
            store, clock, self.seal_key, self.asking, OpenIdClient(outgoing, clock), self.profiles.prove_present
        )
        self._access_points, self._trunk_addresses = access_points, trunk_addresses

    # --- the authority ---------------------------------------------------------------------------

    @property
    def ca_pem(self) -> bytes:
        """The root certificate that all members trust."""
        return self._authority.root_pem

    @property
    def ca_sha256(self) -> str:
        """The hash of the root's public key in hexadecimal, as join tokens carry its first half."""
        return public_key_sha256(self._authority.root_pem).hex()

    @property
    def master_public(self) -> bytes:
        """The Master's Ed25519 key, by which agents check commands."""
        return self._authority.signing.public

    def signed_regions(self) -> SignedRegions:
        """The map of Accesses as it is now; its version is the time in milliseconds, so it grows."""
        version = self._clock.wall_ns() // MILLISECOND
        signed = encode_region_map(RegionMap(version, self._access_points()))
        return SignedRegions(signed, self._authority.signing.sign(DOMAIN_REGIONS, signed))

    # --- joining and renewal ---------------------------------------------------------------------

    async def join(self, request: JoinRequest) -> JoinAnswer:
        """Make a member of whoever holds a good join token and proves its keys."""
        if not request.join_token.startswith("wj_") or len(request.join_token) > 200:
            raise InvalidInput("join_token is not a join token (wj_....<hash>).")
        digest = hashlib.sha256(request.join_token.encode()).digest()
        verify_signature(request.sign_public, DOMAIN_JOIN, digest + request.tls_csr_pem, request.proof)
        addresses = decide.check_addresses(request.addresses)
        member = await self._store.write(lambda uow: self._join(uow, request, digest, addresses), name="join")
        return self._answer(member)

    def _join(self, uow: UnitOfWork, request: JoinRequest, digest: bytes, addresses: tuple[str, ...]) -> Member:
        token = uow[JoinTokenRepository].by_hash(digest)
        owner = uow[AccountRepository].get(token.account_id) if token is not None else None
        if owner is not None and owner.state is AccountState.SUSPENDED:
            raise JoinTokenRefused("The account of this join token is suspended. Ask an operator of this market.")
        known = uow[MemberRepository].by_key(request.sign_public)
        csr_sha256 = hashlib.sha256(request.tls_csr_pem).digest()
        verdict = decide.judge_join(token, request.role, known, csr_sha256, uow.now_wall_ns)
        if isinstance(verdict, decide.Refuse):
            raise verdict.error
        assert token is not None
        if isinstance(verdict, decide.Repeat):
            assert known is not None
            return known
        if not _may_still_join(uow, token):
            raise JoinTokenRefused("Who made this join token may not add hosts any more. Ask for a new one.")
        if known is None:
            self._store.admit()
        generation = verdict.generation if isinstance(verdict, decide.Rejoin) else 1
        member_id = known.id if known is not None else uow.mint(request.role.value)
        issued = self._authority.issue_member(
            request.role, member_id, generation, request.tls_csr_pem, addresses, uow.now_wall_ns
        )
        member = Member(
            id=member_id,
            role=request.role,
            account_id=token.account_id,
            name=decide.clean_name(request.host_name, fallback=request.role.value),
            simulated=request.simulated,
            sign_public=request.sign_public,
            generation=generation,
            csr_sha256=csr_sha256,
            certificate_pem=issued.certificate_pem,
            not_after_ns=issued.not_after_ns,
            standing=Standing.GOOD,
            reason="",
            addresses=addresses,
            joined_at_ns=known.joined_at_ns if known is not None else uow.now_wall_ns,
            used_generation=known.used_generation if known is not None else 0,
            purchase_id=token.purchase_id,
        )
        uow[MemberRepository].save(member)
        uow[JoinTokenRepository].use(token.id, member_id, uow.now_wall_ns)
        uow.audit(
            f"account/{token.account_id}",
            f"{request.role}.join",
            member_id,
            fields={"name": member.name, "generation": str(generation), "join_token": token.id},
        )
        uow.event(
            f"{request.role}.joined",
            [member_id],
            f"{member.name} joined as {_KINDS[request.role]}{', simulated' if member.simulated else ''}",
            {"generation": str(generation)},
        )
        if request.role is MemberRole.HOST:
            uow.publish(HostJoined(member))
        return member

    async def renew(self, request: RenewRequest) -> JoinAnswer:
        """Give a member its next certificate; a clone is quarantined and both copies are refused."""
        claim = f"{request.id}|{request.generation}|{request.wall_ns}|".encode() + request.tls_csr_pem

        def renew(uow: UnitOfWork) -> Member | WindrowError:
            member = uow[MemberRepository].get(request.id)
            if member is not None:
                verify_signature(member.sign_public, DOMAIN_RENEW, claim, request.proof)
            return self._renew(uow, member, request)

        answer = await self._store.write(renew, name="renew")
        if isinstance(answer, WindrowError):
            raise answer
        return self._answer(answer)

    def _renew(self, uow: UnitOfWork, member: Member | None, request: RenewRequest) -> Member | WindrowError:
        csr_sha256 = hashlib.sha256(request.tls_csr_pem).digest()
        verdict = decide.judge_renewal(member, request.generation, csr_sha256, uow.now_wall_ns, self._backup_at_ns)
        if isinstance(verdict, decide.Refuse):
            return verdict.error
        assert member is not None
        match verdict:
            case decide.Repeat():
                return member
            case decide.Clone(reason):
                # Returned, not raised: the quarantine must stay.
                self.set_standing(uow, member.id, Standing.QUARANTINED, "master", reason)
                uow.publish(CloneFound(member, reason))
                return Banned(f"Quarantined: {reason}. Ask the operator of this Master.", subject=member.id)
            case decide.Issue(generation):
                issued = self._authority.issue_member(
                    member.role, member.id, generation, request.tls_csr_pem, member.addresses, uow.now_wall_ns
                )
                renewed = replace(
                    member,
                    generation=generation,
                    csr_sha256=csr_sha256,
                    certificate_pem=issued.certificate_pem,
                    not_after_ns=issued.not_after_ns,
                    restored_at_ns=member.restored_at_ns if request.generation == member.generation else None,
                )
                uow[MemberRepository].save(renewed)
                uow.audit(f"{member.role}/{member.id}", "certificate.renew", member.id, fields={"g": str(generation)})
                return renewed
            case _:
                assert_never(verdict)

    def _answer(self, member: Member) -> JoinAnswer:
        return JoinAnswer(
            id=member.id,
            generation=member.generation,
            certificate_pem=member.certificate_pem,
            ca_pem=self.ca_pem.decode(),
            master_public=self.master_public,
            regions=self.signed_regions(),
            not_after_ns=member.not_after_ns,
            trunk_addresses=self._trunk_addresses,
            is_bought=member.purchase_id is not None,
        )

    # --- members, for the link and fleet ---------------------------------------------------------

    def member(self, uow: UnitOfWork, member_id: str) -> Member | None:
        """One host or Access as identity knows it."""
        return uow[MemberRepository].get(member_id)

    async def generations_used(self, heard: Mapping[HostId, int]) -> None:
        """Write down with which certificates hosts were heard; a smaller number than before changes nothing."""

        def note(uow: UnitOfWork) -> None:
            for host_id, generation in heard.items():
                member = uow[MemberRepository].get(host_id)
                if member is not None and member.used_generation < generation:
                    uow[MemberRepository].save(replace(member, used_generation=generation))

        await self._store.write(note, name="generations_used")

    async def generation_found(self, host_id: HostId, generation: int, not_after_ns: int) -> None:
        """A host came with a newer certificate than is known of, and proved its key: a restore has forgotten some.
        Older ones are refused from now on, and no other jump is allowed."""

        def find(uow: UnitOfWork) -> None:
            member = uow[MemberRepository].get(host_id)
            if member is None or not member.may_jump(uow.now_wall_ns) or generation <= member.generation:
                raise CertificateRefused(subject=host_id)
            found = replace(
                member, generation=generation, csr_sha256=b"", not_after_ns=not_after_ns, restored_at_ns=None
            )
            uow[MemberRepository].save(found)
            fields = {"from": str(member.generation), "to": str(generation)}
            uow.audit("master", "certificate.find", host_id, "renewed after the backup that was restored", fields)

        await self._store.write(find, name="certificate.find")

    def forgetting(self) -> str:
        """The end of a sentence to who is not known here, with the way out."""
        return decide.forgetting(self._backup_at_ns)

    def access_key(self, uow: UnitOfWork, access_id: str) -> bytes | None:
        """The Ed25519 key that an Access signs with; None if the Access is not one of this market."""
        member = uow[MemberRepository].get(access_id)
        return member.sign_public if member is not None and member.role is MemberRole.ACCESS else None

    def host_public_key(self, uow: UnitOfWork, host_id: str) -> bytes | None:
        """The Ed25519 key a host signs with; None when it is not known or not in good standing."""
        member = uow[MemberRepository].get(host_id)
        return member.sign_public if member is not None and member.standing is Standing.GOOD else None

    def banned(self, uow: UnitOfWork) -> Sequence[str]:
        """Ids whose streams every Access must close."""
        return uow[MemberRepository].banned()

    def set_standing(self, uow: UnitOfWork, member_id: str, standing: Standing, actor: str, reason: str) -> None:
        """Change whether a member's certificate is honoured; nothing happens where it already stands so."""
        member = uow[MemberRepository].get(member_id)
        if member is None or member.standing is standing:
            return
        uow[MemberRepository].save(replace(member, standing=standing, reason=reason))
        uow.audit(actor, f"{member.role}.{standing}", member_id, reason)
        uow.publish(StandingChanged(member_id))

    # --- who is asking ---------------------------------------------------------------------------

    async def authenticate(self, secret: str, address: str = "", project_id: str = "") -> Principal:
        """Return the owner of this API token or browser's session; raises Unauthenticated. address: from where it
        asks. project_id: in which it is to act; empty: its own. Raises Forbidden, NotFound where it may not."""
        return await self.asking.whose(secret, address, project_id)

    # --- tokens ----------------------------------------------------------------------------------

    async def make_token(
        self, principal: Principal, name: str, wanted: frozenset[Role] | None, life_ns: int
    ) -> tuple[ApiToken, str]:
        """A new token of the principal's account, with at most the roles and the life of the principal's own token; the
        text is shown this once. wanted: None: all that the principal's token has."""
        decide.check_token_name(name)
        if principal.service_id is not None:
            raise Forbidden("A service account makes no tokens. An admin does: windrow service-account rotate NAME")
        roles = principal.roles if wanted is None else wanted
        if not roles or roles - principal.roles:
            raise Forbidden(f"A token can have only roles that you have: {', '.join(sorted(principal.roles))}.")
        if not 0 < life_ns <= TOKEN_LIFE_NS_MAX:
            raise InvalidInput("expires_in_s must be above 0 and at most 90 days.")

        def make(uow: UnitOfWork) -> tuple[ApiToken, str]:
            have = uow[TokenRepository].count(principal.account_id, uow.now_wall_ns, principal.user_id)
            decide.check_number(principal, have, decide.TOKENS_MAX, "API tokens", "Revoke some: windrow token rm")
            own = uow[TokenRepository].get(principal.token_id) if principal.token_id else None
            left_ns = life_ns if own is None else min(life_ns, own.expires_at_ns - uow.now_wall_ns)
            token, text = issue_token(
                uow,
                principal.account_id,
                name,
                ALL_ROLES if wanted is None and principal.has_all else roles,
                left_ns,
                principal.actor,
                made_by=principal.token_id,
                user_id=principal.user_id,
            )
            said = f"A token was made: {token.name} ({', '.join(sorted(roles))})"
            uow.event("token.made", (token.id, token.account_id), said, actor=principal.actor)
            return token, text

        return await self._store.write(make, name="token.make")

    async def list_tokens(self, principal: Principal, after: str = "", limit: int = 100) -> Sequence[ApiToken]:
        """The account's tokens with at most the roles of this one, without their texts."""

        def read(uow: UnitOfWork) -> list[ApiToken]:
            def page(last: ApiToken | None, size: int) -> Sequence[ApiToken]:
                return uow[TokenRepository].list(principal.account_id, after if last is None else last.id, size)

            return sift(page, lambda token: decide.reaches(principal, effective(uow, token)), limit, None)[0]

        found = await self._store.read(read)
        shown = [replace(one, roles=one.roles & principal.roles) if one.roles == ALL_ROLES else one for one in found]
        return [
            replace(
                token,
                last_used_at_ns=self.asking.used_at(token.id, token.last_used_at_ns),
                last_used_address=self.asking.used_from(token.id, token.last_used_address),
            )
            for token in shown
        ]

    async def revoke_token(self, principal: Principal, token_id: TokenId) -> None:
        """Make a token of the account worthless at once, the sessions that were begun with it, and what it made:
        tokens, shares of objects, join tokens and sign-in links that nobody has used. Raises NotFound for one that has
        more roles than this one."""

        def revoke(uow: UnitOfWork) -> None:
            token = uow[TokenRepository].get(token_id)
            if token is None or not decide.reaches(principal, effective(uow, token)):
                raise NotFound(subject=token_id)
            if token.revoked_at_ns is None:
                for one in (token_id, *uow[TokenRepository].made_by(token_id)):
                    revoke_with_all(uow, one)
                    if token_id != principal.token_id:  # who signs out takes nothing back
                        uow[ObjectShareRepository].withdraw_of(one)
                    uow.audit(principal.actor, "token.revoke", one, fields={"with": token_id, "by": principal.token_id})
                said = f"A token was revoked: {token.name}; browsers that signed in with it are signed out"
                uow.event("token.revoked", (token_id, token.account_id), said, actor=principal.actor)
            uow.after_commit(self.asking.forget)

        await self._store.write(revoke, name="token.revoke")

    async def make_join_token(
        self, principal: Principal, role: MemberRole, life_ns: int = JOIN_TOKEN_LIFE_NS
    ) -> tuple[JoinToken, str]:
        """A single-use ticket for one host, or (operators only) one Access; the text is shown this once."""
        if role is MemberRole.ACCESS and Role.OPERATOR not in principal.roles:
            raise Forbidden("Only an operator can let a relay join.")
        if not 0 < life_ns <= JOIN_TOKEN_LIFE_NS_MAX:
            raise InvalidInput("expires_in_s must be above 0 and at most one day.")

        def make(uow: UnitOfWork) -> tuple[JoinToken, str]:
            have = uow[JoinTokenRepository].count(principal.account_id, uow.now_wall_ns)
            way = "Use or revoke some; each expires by itself."
            decide.check_number(principal, have, decide.JOIN_TOKENS_MAX, "join tokens", way)
            token, text = self._join_token(uow, principal.account_id, role, life_ns, made_by=principal.token_id)
            uow.audit(principal.actor, "join_token.make", token.id, fields={"role": role.value})
            said = f"A join token was made, for {_KINDS[role]}"
            uow.event("join_token.made", (token.id, token.account_id), said, actor=principal.actor)
            return token, text

        return await self._store.write(make, name="join_token.make")

    def purchase_token(self, uow: UnitOfWork, account_id: AccountId, purchase_id: str, life_ns: int) -> str:
        """The text of a single-use ticket for the machine of one purchase, which becomes a host of this account."""
        token, text = self._join_token(uow, account_id, MemberRole.HOST, life_ns, purchase_id=purchase_id)
        uow.audit("master", "join_token.make", token.id, fields={"purchase": purchase_id})
        return text

    def end_purchase_tokens(self, uow: UnitOfWork, purchase_id: str) -> None:
        """Let no machine join for this purchase any more."""
        uow[JoinTokenRepository].revoke_of_purchase(purchase_id, uow.now_wall_ns)

    def _join_token(
        self,
        uow: UnitOfWork,
        account_id: AccountId,
        role: MemberRole,
        life_ns: int,
        *,
        made_by: TokenId | None = None,
        purchase_id: str | None = None,
    ) -> tuple[JoinToken, str]:
        text = f"wj_{new_secret(uow)}.{self.ca_sha256[:CA_HASH_HEX]}"
        token = JoinToken(
            id=TokenId(uow.mint("jointoken")),
            account_id=account_id,
            role=role,
            sha256=hashlib.sha256(text.encode()).digest(),
            created_at_ns=uow.now_wall_ns,
            expires_at_ns=uow.now_wall_ns + life_ns,
            used_at_ns=None,
            used_by=None,
            revoked_at_ns=None,
            made_by=made_by,
            purchase_id=purchase_id,
        )
        uow[JoinTokenRepository].add(token)
        return token, text

    async def list_join_tokens(self, principal: Principal, after: str = "", limit: int = 100) -> Sequence[JoinToken]:
        """The account's join tokens that can still be used."""
        return await self._store.read(
            lambda uow: uow[JoinTokenRepository].list(principal.account_id, uow.now_wall_ns, after, limit)
        )

    async def join_token(self, principal: Principal, token_id: TokenId) -> JoinToken:
        """One of the account, used or not. Raises NotFound."""

        def find(uow: UnitOfWork) -> JoinToken:
            token = uow[JoinTokenRepository].get(token_id)
            if token is None or token.account_id != principal.account_id:
                raise NotFound("There is no such join token.", subject=token_id[:128])
            return token

        return await self._store.read(find)

    async def revoke_join_token(self, principal: Principal, token_id: TokenId) -> None:
        """Make a join token of the account worthless at once."""

        def revoke(uow: UnitOfWork) -> None:
            token = uow[JoinTokenRepository].get(token_id)
            if token is None or token.account_id != principal.account_id:
                raise NotFound(subject=token_id)
            uow[JoinTokenRepository].revoke(token_id, uow.now_wall_ns)
            uow.audit(principal.actor, "join_token.revoke", token_id)
            subjects = (token_id, token.account_id)
            uow.event("join_token.revoked", subjects, "A join token was revoked", actor=principal.actor)

        await self._store.write(revoke, name="join_token.revoke")

    # --- the first account -----------------------------------------------------------------------

    def first_account(self, name: str = "owner") -> Account:
        """The project of whoever started this Master, a user of that name with every role, made at the first start.
        Before the loop runs."""

        def ensure(uow: UnitOfWork) -> Account:
            account = uow[AccountRepository].first()
            if account is None:
                made = Account(AccountId(uow.mint("account")), FIRST_PROJECT, ALL_ROLES, uow.now_wall_ns)
                account = add_project_of_own(uow, made, name, FIRST_ORGANISATION)
                uow.audit("master", "account.make", account.id, fields={"name": account.name})
                uow.publish(AccountMade(account.id))
            return account

        return self._store.write_now(ensure, name="account.first")

    def local_token(self, account: Account, present: str | None, renew_below_ns: int = 30 * DAY) -> str:
        """The token that `cli.json` holds: `present` while it is good for a month, else a new one. Before the loop."""

        def ensure(uow: UnitOfWork) -> str:
            kept = uow[TokenRepository].by_hash(hashlib.sha256(present.encode()).digest()) if present else None
            if present and kept is not None and kept.revoked_at_ns is None:
                if kept.expires_at_ns - uow.now_wall_ns > renew_below_ns:
                    return present
                uow[TokenRepository].revoke(kept.id, uow.now_wall_ns)
            _, text = issue_token(
                uow, account.id, "cli.json", ALL_ROLES, TOKEN_LIFE_NS_MAX, "master", user_id=own_user(uow, account.id)
            )
            return text

        return self._store.write_now(ensure, name="token.local")


def _may_still_join(uow: UnitOfWork, token: JoinToken) -> bool:
    """Whether who made a join token has the right to it now; those of older releases do not say who that was."""
    maker = uow[TokenRepository].get(token.made_by) if token.made_by is not None else None
    return maker is None or decide.is_allowed(effective(uow, maker).roles, decide.Permission.JOIN_TOKENS)
