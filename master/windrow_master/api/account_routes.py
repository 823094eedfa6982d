"""Routes of accounts: operators add, credit, suspend and resume them; a sign-in link is exchanged for a token."""

from typing import Annotated, Any, Final

from fastapi import Header, Request
from pydantic import Field

from windrow_master.accounts import AccountView
from windrow_master.api import answers
from windrow_master.api.answers import Out, Read, Time
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.bodies import Body, GivenMoney, money_of
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.identity_routes import AccountOut, BalanceNowOut, TokenMadeOut, TokenOut
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.api.route import Routes
from windrow_master.identity.accounts import MadeLink
from windrow_master.identity.decide import Permission
from windrow_master.identity.model import AccountState, Role
from windrow_proto.units import time_text

route = Routes("accounts")

LINK_FRAGMENT: Final = "#sign-in="
"""A fragment stays in the browser: no server and no proxy writes it into a log."""

AccountName = Annotated[str, Field(min_length=1, max_length=64)]


class AccountBody(Body):
    """A new account. credit: test credits that it begins with."""

    name: AccountName
    roles: Annotated[list[Role], Field(min_length=1, max_length=4)]
    credit: GivenMoney = "0"


class CreditBody(Body):
    """Test credits for an account."""

    amount: GivenMoney


class SuspendBody(Body):
    """The reason to suspend an account."""

    reason: Annotated[str, Field(max_length=400)] = ""


class LinkBody(Body):
    """A sign-in link's secret: what follows `#sign-in=`."""

    secret: Annotated[str, Field(max_length=200)]


class PersonOut(Out):
    """An account, whether it may do anything, and what it can spend."""

    id: Annotated[str, Read("account.id")]
    name: Annotated[str, Read("account.name")]
    roles: Annotated[list[Role], Read(lambda view: sorted(view.account.roles))]
    state: Annotated[AccountState, Read("account.state")]
    balance: Annotated[BalanceNowOut, Read(lambda view: view.balance)]
    created_at: Annotated[Time, Read("account.created_at_ns")]


class PersonMadeOut(Out):
    """An account and the link by which its person signs in."""

    account: PersonOut
    link: Annotated[str, Field(description="A URL that works once, shown this once")]
    link_expires_at: Time


class LinkRedeemedOut(Out):
    """The token that a sign-in link was exchanged for."""

    account: AccountOut
    roles: list[Role]
    token: TokenMadeOut


@route.get("/accounts", may=Permission.ACCOUNTS_READ, answer=answers.Page[PersonOut])
async def accounts(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """All accounts, the oldest first, with what each can spend."""
    found = await services.accounts.list(read_cursor(cursor), limit + 1)
    return page(found, limit, PersonOut.of, lambda view: view.account.id)


@route.post(
    "/accounts",
    may=Permission.ACCOUNTS,
    changes_rights=True,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=PersonMadeOut,
)
async def add_account(request: Request, services: Serving, principal: Asking, body: AccountBody) -> Any:
    """A new account, and the link by which its person signs in: shown this once, good for three days, works once."""
    made = await services.accounts.add(principal, body.name, frozenset(body.roles), money_of("credit", body.credit))
    return _made_json(request, services, *made)


@route.get("/accounts/{account_id}", may=Permission.ACCOUNTS_READ, reach=Reach.ALL, answer=PersonOut)
async def account(services: Serving, account_id: str) -> Any:
    """One account, by its id or name."""
    return PersonOut.of(await services.accounts.get(account_id))


@route.post(
    "/accounts/{account_id}/credit",
    may=Permission.ACCOUNTS,
    reach=Reach.OPERATED,
    repeat=Repeat.REPEATABLE,
    answer=PersonOut,
)
async def credit_account(
    services: Serving,
    principal: Asking,
    account_id: str,
    body: CreditBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Any:
    """Grant test credits; with an Idempotency-Key once, however often it is asked for."""
    amount = money_of("amount", body.amount)
    return PersonOut.of(await services.accounts.credit(principal, account_id, amount, idempotency_key))


@route.post(
    "/accounts/{account_id}/link",
    may=Permission.ACCOUNTS,
    changes_rights=True,
    reach=Reach.OPERATED,
    repeat=Repeat.ALWAYS,
    status_code=201,
    answer=PersonMadeOut,
)
async def new_link(request: Request, services: Serving, principal: Asking, account_id: str) -> Any:
    """Another sign-in link for an account; those before it open nothing any more."""
    return _made_json(request, services, *await services.accounts.new_link(principal, account_id))


@route.post(
    "/accounts/{account_id}/suspend",
    may=Permission.ACCOUNTS,
    changes_rights=True,
    reach=Reach.OPERATED,
    answer=PersonOut,
)
async def suspend_account(services: Serving, principal: Asking, account_id: str, body: SuspendBody) -> Any:
    """Stop an account: its tokens and links end, its clusters and jobs end, its hosts take nothing new."""
    return PersonOut.of(await services.accounts.suspend(principal, account_id, body.reason))


@route.post("/accounts/{account_id}/resume", may=Permission.ACCOUNTS, reach=Reach.OPERATED, answer=PersonOut)
async def resume_account(services: Serving, principal: Asking, account_id: str) -> Any:
    """Let a suspended account sign in again."""
    return PersonOut.of(await services.accounts.resume(principal, account_id))


@route.post("/sign-in", may=Permission.NOBODY, signs_in=True, status_code=201, answer=LinkRedeemedOut)
async def redeem_link(services: Serving, body: LinkBody) -> Any:
    """A token of the account that a sign-in link opens; the link works once. Browsers go on with `POST /session`."""
    account, token, text = await services.accounts.redeem(body.secret)
    return {
        "account": {"id": account.id, "name": account.name},
        "roles": sorted(token.roles),
        "token": {**TokenOut.of(token), "token": text},
    }


def _made_json(request: Request, services: Services, view: AccountView, made: MadeLink) -> dict[str, Any]:
    base = services.https_url or str(request.base_url).rstrip("/")
    return {
        "account": PersonOut.of(view),
        "link": f"{base}/{LINK_FRAGMENT}{made.secret}",
        "link_expires_at": time_text(made.expires_at_ns),
    }
