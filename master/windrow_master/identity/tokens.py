"""Makes API tokens inside a unit of work."""

import hashlib

from windrow_master.identity import decide
from windrow_master.identity.model import ApiToken, Role
from windrow_master.identity.people_repository import OrganisationRepository, UserRepository
from windrow_master.identity.repository import (
    JoinTokenRepository,
    SessionRepository,
    SignInLinkRepository,
    TokenRepository,
)
from windrow_master.identity.sessions import new_secret
from windrow_master.store.unit import UnitOfWork
from windrow_proto.ids import AccountId, TokenId


def issue_token(
    uow: UnitOfWork,
    account_id: AccountId,
    name: str,
    roles: frozenset[Role],
    life_ns: int,
    actor: str,
    *,
    made_by: TokenId | None = None,
    user_id: str | None = None,
    is_sign_in: bool = False,
    service_id: str | None = None,
) -> tuple[ApiToken, str]:
    """A new token of an account, and its text. made_by: the token that asked for it. user_id: whose it is; None: the
    account's own, or the service account's. is_sign_in: it belongs to a session."""
    text = "wt_" + new_secret(uow)
    token = ApiToken(
        id=TokenId(uow.mint("token")),
        account_id=account_id,
        name=decide.clean_name(name, fallback="token"),
        sha256=hashlib.sha256(text.encode()).digest(),
        roles=roles,
        created_at_ns=uow.now_wall_ns,
        expires_at_ns=uow.now_wall_ns + life_ns,
        revoked_at_ns=None,
        made_by=made_by,
        user_id=user_id,
        is_sign_in=is_sign_in,
        service_id=service_id,
    )
    uow[TokenRepository].add(token)
    uow.audit(actor, "token.make", token.id, fields={"name": token.name, "roles": ",".join(sorted(roles))})
    return token, text


def revoke_with_all(uow: UnitOfWork, token_id: TokenId) -> None:
    """Make a token worthless, its sessions, and what it asked for and nobody has used: join tokens, sign-in links,
    invitations and password links. Not the tokens that it made."""
    uow[TokenRepository].revoke(token_id, uow.now_wall_ns)
    uow[SessionRepository].revoke_of(token_id, uow.now_wall_ns)
    uow[JoinTokenRepository].revoke_of(token_id, uow.now_wall_ns)
    uow[SignInLinkRepository].forget_of(token_id)
    uow[OrganisationRepository].withdraw_of(token_id)
    uow[UserRepository].forget_password_links_of(token_id)
