"""Signs devices without a browser of their own in: a person approves their code in the console (RFC 8628)."""

import hashlib
from dataclasses import dataclass, replace
from typing import Final

from windrow_master.identity import decide, device_flow
from windrow_master.identity.model import (
    ALL_ROLES,
    AccountState,
    ApiToken,
    DeviceCode,
    DeviceState,
    Principal,
)
from windrow_master.identity.people_lookup import digest_of, own_user_of
from windrow_master.identity.people_repository import UserRepository
from windrow_master.identity.repository import AccountRepository, DeviceRepository, TokenRepository
from windrow_master.identity.sessions import effective, new_secret
from windrow_master.identity.sign_in import Delays
from windrow_master.identity.tokens import issue_token
from windrow_master.store.store import Store
from windrow_master.store.unit import UnitOfWork
from windrow_proto.errors import AccessDenied, TooMany, WindrowError
from windrow_proto.networks import network_of

_NO_DEVICE: Final = "This is no device code. Begin again: windrow login URL"


@dataclass(frozen=True, slots=True)
class Begun:
    """A request of a device: its secret, which it alone knows, and the code that its person compares."""

    device_code: str
    user_code: str


class DeviceService:
    """Requests of devices to be signed in."""

    def __init__(self, store: Store, delays: Delays) -> None:
        """delays: slow down who guesses user codes."""
        self._store, self._delays = store, delays

    async def begin(self, name: str, place: str) -> Begun:
        """A new request. name: what the device calls itself. place: the address that it asks from. Raises TooMany."""
        network = network_of(place) or "-"

        def begin(uow: UnitOfWork) -> Begun:
            codes = uow[DeviceRepository]
            codes.forget_expired(uow.now_wall_ns)
            is_full = codes.count(network) >= device_flow.OPEN_MAX or codes.count() >= device_flow.OPEN_MAX_TOGETHER
            if is_full:
                raise TooMany("Too many devices wait to be approved. Try again in ten minutes.")
            secret = device_flow.DEVICE_PREFIX + new_secret(uow)
            shown = device_flow.user_code(uow.random_bytes(device_flow.CODE_BYTES))
            codes.save(
                DeviceCode(
                    id=uow.mint("device"),
                    device_sha256=hashlib.sha256(secret.encode()).digest(),
                    user_sha256=device_flow.user_sha256(shown),
                    name=decide.clean_name(name, fallback="a device"),
                    address=place[:64] or "-",
                    network=network[:64],
                    created_at_ns=uow.now_wall_ns,
                    expires_at_ns=uow.now_wall_ns + device_flow.LIFE_NS,
                    interval_ns=device_flow.INTERVAL_NS,
                )
            )
            return Begun(secret, shown)

        return await self._store.write(begin, name="device.begin")

    async def look_at(self, principal: Principal, typed: str) -> DeviceCode:
        """The request with this user code, before it is decided. Raises NotFound, Conflict, TooMany for who guesses."""
        self._delays.begin(f"device codes of {principal.user_id}", "")

        def read(uow: UnitOfWork) -> DeviceCode:
            own_user_of(uow, principal)
            return _found(uow, typed)

        code = await self._store.read(read)
        self._delays.right(f"device codes of {principal.user_id}", "")
        return code

    async def decide(self, principal: Principal, typed: str, *, approves: bool) -> None:
        """Let a device act as the caller's user in the caller's project, or refuse it. Works once. Raises as
        `look_at`, and Forbidden for a caller who is no user or has no role."""
        await self.look_at(principal, typed)

        def decide_(uow: UnitOfWork) -> None:
            user, code = own_user_of(uow, principal), _found(uow, typed)
            if approves:
                have = uow[TokenRepository].count(principal.account_id, uow.now_wall_ns, user.id)
                decide.check_number(principal, have, decide.TOKENS_MAX, "API tokens", "Revoke some: windrow token rm")
            state = DeviceState.APPROVED if approves else DeviceState.REFUSED
            uow[DeviceRepository].save(replace(code, state=state, approved_by=principal.token_id))
            fields = {"name": code.name, "address": code.address}
            uow.audit(principal.actor, "device.approve" if approves else "device.refuse", code.id, fields=fields)

        await self._store.write(decide_, name="device.decide")

    async def token(self, device_code: str) -> tuple[ApiToken, str]:
        """The token of a device that was approved, once. Raises Unauthenticated for what is no device code,
        AuthorisationPending, SlowDown, AccessDenied, ExpiredToken."""
        digest = digest_of(device_code, device_flow.DEVICE_PREFIX, _NO_DEVICE)

        def ask(uow: UnitOfWork) -> tuple[ApiToken, str] | WindrowError:
            code = uow[DeviceRepository].by_device(digest)
            after, refusal = device_flow.judge_question(code, uow.now_wall_ns)
            if after is not None:
                uow[DeviceRepository].save(after)
            elif code is not None:
                uow[DeviceRepository].remove(code.id)
            if refusal is not None:
                return refusal  # returned, not raised: that it asked must stay
            assert code is not None
            return _issue(uow, code)

        made = await self._store.write(ask, name="device.token")
        if isinstance(made, WindrowError):
            raise made
        return made


def _found(uow: UnitOfWork, typed: str) -> DeviceCode:
    code = uow[DeviceRepository].by_user(device_flow.user_sha256(typed))
    return device_flow.check_open(code, uow.now_wall_ns)


def _issue(uow: UnitOfWork, code: DeviceCode) -> tuple[ApiToken, str] | WindrowError:
    """A token with what its approver has now. An error where the approver has nothing any more."""
    by = uow[TokenRepository].get(code.approved_by) if code.approved_by is not None else None
    user = uow[UserRepository].get(by.user_id or "") if by is not None else None
    account = uow[AccountRepository].get(by.account_id) if by is not None else None
    if by is None or user is None or account is None:
        return AccessDenied()
    left_ns = min(device_flow.TOKEN_LIFE_NS, by.expires_at_ns - uow.now_wall_ns)
    is_good = by.revoked_at_ns is None and user.disabled_at_ns is None and account.state is AccountState.ACTIVE
    roles = effective(uow, by).roles
    if not is_good or left_ns <= 0 or not roles:
        return AccessDenied("Who approved this device may do nothing here any more. Begin again: windrow login URL")
    most = ALL_ROLES if by.roles == ALL_ROLES else roles
    token, text = issue_token(
        uow,
        account.id,
        f"windrow login on {code.name}",
        most,
        left_ns,
        f"user/{user.id}",
        made_by=by.id,
        user_id=user.id,
    )
    said = f"A token was made: {token.name} ({', '.join(sorted(roles))})"
    uow.event("token.made", (token.id, account.id), said, actor=f"user/{user.id}")
    return token, text
