"""What users change about themselves: name and mail address, password, second factor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import membership, second_factor
from windrow_master.identity.model import Principal, Role, SessionId
from windrow_master.identity.passwords import Passwords, hashed
from windrow_master.identity.people import Factor, Organisation, PasswordLink, User
from windrow_master.identity.people_lookup import (
    Project,
    check_free,
    check_name_free,
    digest_of,
    manages_all,
    member_of,
    named,
    own_user_of,
    secret_sha256,
    whole_user_of,
)
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import SessionRepository, TokenRepository
from windrow_master.identity.rights import is_fresh
from windrow_master.identity.sessions import Asking, new_secret
from windrow_master.identity.sign_in import SignIn
from windrow_master.mail.message import Letter
from windrow_master.mail.service import MailService
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import Conflict, Forbidden, InvalidInput, SignInAgain, Unauthenticated
from windrow_proto.ids import TokenId
from windrow_proto.sealed import seal
from windrow_proto.units import MINUTE

PASSWORD_LINK_LIFE_NS: Final = 30 * MINUTE
PASSWORD_LINK_PREFIX: Final = "wp_"
FORGOTTEN_NS: Final = 5 * MINUTE
"""Between two mails to one user."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A user's place in one organisation."""

    organisation: Organisation
    role: Role | None
    projects: Sequence[Project]


@dataclass(frozen=True, slots=True)
class Profile:
    """What a user knows of the own account. recovery_left: codes that are left; None: there is no second factor."""

    user: User
    recovery_left: int | None
    standings: Sequence[Standing]


class ProfileService:
    """The own account of each user."""

    def __init__(
        self, store: Store, asking: Asking, sign_in: SignIn, passwords: Passwords, mail: MailService, secret_end: str
    ) -> None:
        """secret_end: the part of a link by which its reader knows the market."""
        self._store, self._asking, self._sign_in = store, asking, sign_in
        self._passwords, self._mail, self._secret_end = passwords, mail, secret_end

    # --- the own user --------------------------------------------------------------------------------------------

    async def profile(self, principal: Principal) -> Profile:
        """What the caller's user is, and where."""

        def read(uow: UnitOfWork) -> Profile:
            user = own_user_of(uow, principal)
            factor = uow[UserRepository].factor(user.id)
            left = len(factor.recovery) if factor is not None and factor.confirmed_at_ns is not None else None
            repository = uow[OrganisationRepository]
            standings = [
                Standing(found, role, named(uow, repository.projects_of(user.id, found.id)))
                for found, role in repository.organisations_of(user.id)
            ]
            return Profile(user, left, standings)

        return await self._store.read(read)

    async def prove(self, principal: Principal, password: str | None, code: str | None, token: str | None) -> None:
        """Show again who sits at the caller's session: by the password, a code of the second factor, or a token of the
        same user; one of them is given. Raises Forbidden for a wrong one, TooMany for who guesses, Conflict for a
        caller without a session."""
        session_id = principal.session_id
        if session_id is None:
            raise Conflict("An API token is not asked to sign in again: only a session is.")
        if token is not None:
            await self._prove_by_token(principal, token)
        else:
            user = await self._store.read(lambda uow: own_user_of(uow, principal))
            if password is not None:
                await self.check_password(user, password)
            else:
                await self._prove_by_code(user, code or "")

        def note(uow: UnitOfWork) -> None:
            uow[SessionRepository].prove(session_id, uow.now_wall_ns)
            uow.audit(principal.actor, "session.prove", session_id)
            uow.after_commit(self._asking.forget)

        await self._store.write(note, name="session.prove")

    async def _prove_by_token(self, principal: Principal, token: str) -> None:
        try:
            other = await self._asking.authenticate(token)
        except Unauthenticated:
            raise Forbidden("This is no token that is valid.") from None
        is_same = (other.user_id, other.service_id) == (principal.user_id, None)
        if principal.user_id is None:
            is_same = is_same and other.account_id == principal.account_id
        if not is_same or not (other.has_all or other.token_id == principal.token_id or other.roles >= principal.roles):
            raise Forbidden("This token is another user's, or has only a part of your roles.")

    async def _prove_by_code(self, user: User, code: str) -> None:
        delays = self._sign_in.delays
        delays.begin(_codes_of(user), "")

        def use(uow: UnitOfWork) -> bool:
            factor = uow[UserRepository].factor(user.id)
            if factor is None or factor.confirmed_at_ns is None:
                return False
            try:
                self._sign_in.check_factor(uow, user, code)
            except Unauthenticated:
                return False
            return True

        if not await self._store.write(use, name="user.factor_use"):
            raise Forbidden("The code is wrong, or was used already. Wait for the next one.")
        delays.right(_codes_of(user), "")

    async def change_profile(
        self, principal: Principal, name: str | None, address: str | None, password: str | None
    ) -> None:
        """Change the caller's name or mail address; None: as it is. A user with a password gives it for another
        address. Raises InvalidInput, Unauthenticated, Conflict where another user has the address."""
        checked_name = None if name is None else membership.check_person(name)
        checked = None if address is None else membership.check_address(address)
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        if checked is not None:
            await self.prove_present(principal, user, password)

        def change(uow: UnitOfWork) -> None:
            found = whole_user_of(uow, principal)
            if checked is not None:
                check_free(uow, checked, found.id)
            if checked_name is not None and checked_name != found.name:
                for organisation, _ in uow[OrganisationRepository].organisations_of(found.id):
                    check_name_free(uow, organisation.id, checked_name)
            changed = replace(found, name=checked_name or found.name, address=checked or found.address)
            uow[UserRepository].save(changed)
            if checked is not None:
                uow[UserRepository].forget_password_links(found.id)
            what = ",".join(part for part, one in (("name", name), ("address", address)) if one is not None)
            uow.audit(principal.actor, "user.change", found.id, fields={"what": what})
            uow.after_commit(self._asking.forget)

        await self._store.write(change, name="user.change")

    async def set_password(self, principal: Principal, present: str | None, password: str) -> None:
        """Change the caller's password; the first one needs no present one, but a mail address. The user's other
        sessions end. Raises InvalidInput, Unauthenticated."""
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        if user.address is None:
            raise InvalidInput("address: Set a mail address first: people sign in with it.", subject="address")
        await self.prove_present(principal, user, present)
        encoded = await hashed(self._store, self._passwords, password, user.name, user.address)

        def change(uow: UnitOfWork) -> None:
            found = whole_user_of(uow, principal)
            if found.password != user.password:
                raise Conflict("The password was changed meanwhile.")
            self._set_password(uow, found, encoded, principal.actor, keep=principal.session_id)

        await self._store.write(change, name="user.password")

    async def begin_factor(self, principal: Principal, password: str | None) -> tuple[str, str]:
        """A new TOTP secret for the caller, as text and as the address of a QR code; asked for only once it is shown
        to work. Raises Unauthenticated, Conflict where there is a second factor already."""
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        if user.password is None:
            raise Conflict("Set a password first: a second factor comes after it.")
        await self.check_password(user, password)

        def begin(uow: UnitOfWork) -> bytes:
            kept = uow[UserRepository].factor(user.id)
            if kept is not None and kept.confirmed_at_ns is not None:
                raise Conflict("There is a second factor already. Remove it first.")
            secret = uow.random_bytes(second_factor.SECRET_BYTES)
            sealed = seal(self._sign_in.seal_public, secret, second_factor.PURPOSE + user.id)
            uow[UserRepository].save_factor(Factor(user.id, sealed))
            return secret

        secret = await self._store.write(begin, name="user.factor")
        return second_factor.secret_text(secret), second_factor.uri_of(secret, user.address or user.name, "Windrow")

    async def confirm_factor(self, principal: Principal, code: str) -> list[str]:
        """Ask for the second factor from now on, if this code of it is right; returns recovery codes, shown this once.
        The user's other sessions end."""

        def confirm(uow: UnitOfWork) -> list[str]:
            user = whole_user_of(uow, principal)
            kept = uow[UserRepository].factor(user.id)
            if kept is None or kept.confirmed_at_ns is not None:
                raise Conflict("There is no second factor to confirm.")
            used = second_factor.used_with(kept, self._sign_in.secret_of(kept), code, uow.now_wall_ns)
            if used is None:
                raise InvalidInput("code: The code is wrong. Look at the app's clock, and take the next one.")
            drawn = uow.random_bytes(second_factor.RECOVERY_CODES * second_factor.RECOVERY_BYTES)
            codes = second_factor.recovery_codes(drawn)
            hashes = tuple(second_factor.code_sha256(one) for one in codes)
            uow[UserRepository].save_factor(replace(used, confirmed_at_ns=uow.now_wall_ns, recovery=hashes))
            self._end_sessions(uow, user, keep=principal.session_id)
            uow.audit(principal.actor, "user.factor_on", user.id)
            return codes

        return await self._store.write(confirm, name="user.factor_on")

    async def remove_factor(self, principal: Principal, password: str | None, code: str) -> None:
        """Ask for no second factor any more. Raises Forbidden for a wrong password or code."""
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        await self.check_password(user, password)
        self._sign_in.delays.begin(_codes_of(user), "")

        def remove(uow: UnitOfWork) -> None:
            found = whole_user_of(uow, principal)
            try:
                self._sign_in.check_factor(uow, found, code)
            except Unauthenticated as wrong:
                raise Forbidden(wrong.detail) from None
            uow[UserRepository].remove_factor(found.id)
            uow.audit(principal.actor, "user.factor_off", found.id)

        await self._store.write(remove, name="user.factor_off")
        self._sign_in.delays.right(_codes_of(user), "")

    # --- the password by link ------------------------------------------------------------------------------------

    async def password_link(self, principal: Principal, user_id: str) -> tuple[User, str, int]:
        """A link by which a member sets a new password, its secret and its end. Raises NotFound, Forbidden where the
        member has more rights than the caller."""

        def make(uow: UnitOfWork) -> tuple[User, str, int]:
            user, role = member_of(uow, principal, user_id)
            if user.id == principal.user_id and user.password is not None:
                raise Forbidden("Change your own password with the present one: in the console, under Settings.")
            membership.check_changes(principal, role)
            repository = uow[OrganisationRepository]
            projects = repository.projects_of(user.id)
            is_more = not manages_all(principal) and (
                set(projects) != {principal.account_id}
                or not projects[principal.account_id] <= principal.roles | {Role.VIEWER}
            )
            is_self = user.id == principal.user_id and not principal.has_all
            if is_more or is_self or user.roles - principal.roles or len(repository.organisations_of(user.id)) > 1:
                raise Forbidden("This user has rights beyond yours. Ask an owner of the organisation, or an operator.")
            secret, until = self._password_link(uow, user, principal.actor, principal.token_id)
            return user, secret, until

        return await self._store.write(make, name="user.password_link")

    async def forgotten(self, address: str, link_of: Callable[[str], str]) -> None:
        """Mail a link by which the user with this address sets a new password, if there is one; nothing tells. At most
        one mail in five minutes. Raises Conflict where this market sends no mail."""
        if not self._mail.is_on:
            raise Conflict("This market sends no mail. Ask an admin of your organisation for a link to a new password.")

        def write(uow: UnitOfWork) -> None:
            user = uow[UserRepository].by_address(address)
            if user is None or user.address is None or user.disabled_at_ns is not None:
                return
            present = uow[UserRepository].password_link_of(user.id)
            if present is not None and present.expires_at_ns - uow.now_wall_ns > PASSWORD_LINK_LIFE_NS - FORGOTTEN_NS:
                return
            secret, _ = self._password_link(uow, user, f"user/{user.id}", None)
            self._mail.write(uow, user.address, _password_letter(link_of(secret)))

        await self._store.write(write, name="user.forgotten")

    async def set_password_by_link(self, secret: str, password: str) -> None:
        """Set the password of the user whom the link is for; it works once, and all sessions of the user end. Raises
        Unauthenticated, InvalidInput."""
        refused = "This link was used, has expired or was replaced. Ask for a new one."
        digest = digest_of(secret, PASSWORD_LINK_PREFIX, refused)

        def find(uow: UnitOfWork) -> User:
            link = uow[UserRepository].password_link(digest)
            user = uow[UserRepository].get(link.user_id) if link is not None else None
            if link is None or user is None or user.disabled_at_ns is not None or uow.now_wall_ns >= link.expires_at_ns:
                raise Unauthenticated(refused)
            return user

        user = await self._store.read(find)
        encoded = await hashed(self._store, self._passwords, password, user.name, user.address or "")
        await self._store.write(
            lambda uow: self._set_password(uow, find(uow), encoded, f"user/{user.id}", keep=None), name="user.password"
        )

    async def proved(self, principal: Principal, password: str | None) -> User:
        """The caller's user, who gives the password, or without one has signed in of late. Raises Forbidden,
        SignInAgain."""
        user = await self._store.read(lambda uow: whole_user_of(uow, principal))
        await self.prove_present(principal, user, password)
        return user

    async def prove_present(self, principal: Principal, user: User, password: str | None) -> None:
        """Like `check_password`; a user without a password has signed in of late instead. Raises SignInAgain."""
        if user.password is not None:
            await self.check_password(user, password)
        elif not is_fresh(principal, await self._store.read(lambda uow: uow.now_wall_ns)):
            raise SignInAgain

    async def check_password(self, user: User, password: str | None) -> None:
        """Raises Forbidden unless it is this user's password; wrong ones count as those at sign-in do."""
        delays = self._sign_in.delays
        delays.begin(user.id, "")
        try:
            is_right = await self._passwords.matches(password or "", user.password)
        except BaseException:
            delays.take_back(user.id, "")
            raise
        if not is_right:
            raise Forbidden("The password is wrong.")
        delays.right(user.id, "")

    def _password_link(self, uow: UnitOfWork, user: User, actor: str, made_by: TokenId | None) -> tuple[str, int]:
        secret = f"{PASSWORD_LINK_PREFIX}{new_secret(uow)}.{self._secret_end}"
        until = uow.now_wall_ns + PASSWORD_LINK_LIFE_NS
        link = PasswordLink(uow.mint("passwordlink"), user.id, secret_sha256(secret), until, made_by)
        uow[UserRepository].add_password_link(link)
        uow.audit(actor, "user.password_link", user.id, fields={"link": link.id})
        return secret, until

    def _set_password(self, uow: UnitOfWork, user: User, encoded: str, actor: str, *, keep: SessionId | None) -> None:
        uow[UserRepository].save(replace(user, password=encoded))
        uow[UserRepository].forget_password_links(user.id)
        self._end_sessions(uow, user, keep=keep)
        uow.audit(actor, "user.password", user.id)

    def _end_sessions(self, uow: UnitOfWork, user: User, *, keep: SessionId | None) -> None:
        for session in uow[SessionRepository].of_user(user.id):
            if session.id != keep:
                uow[SessionRepository].revoke(session.id, uow.now_wall_ns)
                uow[TokenRepository].revoke_sign_in(session.token_id, uow.now_wall_ns)
        uow.after_commit(self._asking.forget)


def _codes_of(user: User) -> str:
    """By which tries of a user's codes are counted: apart from those of the password, which a right one forgets."""
    return f"{user.id} codes"


def _password_letter(link: str) -> Letter:
    return Letter(
        subject="A new password for Windrow",
        paragraphs=("Somebody asked for a new password for the user with this address.",),
        link=link,
        link_text="Set a new password",
        below=("The link works once, for 30 minutes. Your present password stays until then.",),
    )
