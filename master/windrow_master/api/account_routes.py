"""Routes of accounts: operators add, credit, suspend and resume them; whoever has a sign-in link gets a token by it."""

from typing import Annotated, Any, Final

from fastapi import Header, Request
from pydantic import Field

from windrow_master.accounts import AccountView, MadeLink
from windrow_master.api import out_accounts
from windrow_master.api.cluster_routes import money_of
from windrow_master.api.deps import Asking, Services, Serving
from windrow_master.api.idempotency import make_router
from windrow_master.api.identity_routes import Body, token_json
from windrow_master.api.paging import Cursor, Limit, page, read_cursor
from windrow_master.identity.model import Role
from windrow_proto.units import CURRENCY_TEST, money_text, time_text

router = make_router("accounts")

LINK_FRAGMENT: Final = "#sign-in="
"""A fragment stays in the browser: no server and no proxy writes it into a log."""

AccountName = Annotated[str, Field(min_length=1, max_length=64)]
Money = Annotated[str, Field(max_length=30)]


class AccountBody(Body):
    """A new account. credit: test credits that it begins with."""

    name: AccountName
    roles: Annotated[list[Role], Field(min_length=1, max_length=4)]
    credit: Money = "0"


class CreditBody(Body):
    """Test credits for an account."""

    amount: Money


class SuspendBody(Body):
    """Why an account is suspended."""

    reason: Annotated[str, Field(max_length=400)] = ""


class LinkBody(Body):
    """A sign-in link's secret: what follows `#sign-in=`."""

    secret: Annotated[str, Field(max_length=200)]


@router.get("/accounts", responses=out_accounts.ACCOUNTS)
async def accounts(services: Serving, limit: Limit = 100, cursor: Cursor = None) -> Any:
    """All accounts, the oldest first, with what each can spend."""
    found = await services.accounts.list(read_cursor(cursor), limit + 1)
    return page(found, limit, _account_json, lambda view: view.account.id)


@router.post("/accounts", status_code=201, responses=out_accounts.ACCOUNT_MADE)
async def add_account(request: Request, services: Serving, principal: Asking, body: AccountBody) -> Any:
    """A new account, and the link by which its person signs in: shown this once, good for three days, works once."""
    made = await services.accounts.add(principal, body.name, frozenset(body.roles), money_of("credit", body.credit))
    return _made_json(request, services, *made)


@router.get("/accounts/{account_id}", responses=out_accounts.ACCOUNT)
async def account(services: Serving, account_id: str) -> Any:
    """One account, by its id or name."""
    return _account_json(await services.accounts.get(account_id))


@router.post("/accounts/{account_id}/credit", responses=out_accounts.ACCOUNT)
async def credit_account(
    services: Serving,
    principal: Asking,
    account_id: str,
    body: CreditBody,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
) -> Any:
    """Grant test credits; with an Idempotency-Key once, however often it is asked for."""
    amount = money_of("amount", body.amount)
    return _account_json(await services.accounts.credit(principal, account_id, amount, idempotency_key))


@router.post("/accounts/{account_id}/link", status_code=201, responses=out_accounts.ACCOUNT_MADE)
async def new_link(request: Request, services: Serving, principal: Asking, account_id: str) -> Any:
    """Another sign-in link for an account; those before it open nothing any more."""
    return _made_json(request, services, *await services.accounts.new_link(principal, account_id))


@router.post("/accounts/{account_id}/suspend", responses=out_accounts.ACCOUNT)
async def suspend_account(services: Serving, principal: Asking, account_id: str, body: SuspendBody) -> Any:
    """Stop an account: its tokens and links end, its clusters and jobs end, its hosts take nothing new."""
    return _account_json(await services.accounts.suspend(principal, account_id, body.reason))


@router.post("/accounts/{account_id}/resume", responses=out_accounts.ACCOUNT)
async def resume_account(services: Serving, principal: Asking, account_id: str) -> Any:
    """Let a suspended account sign in again."""
    return _account_json(await services.accounts.resume(principal, account_id))


@router.post("/sign-in", status_code=201, responses=out_accounts.LINK_REDEEMED)
async def redeem_link(services: Serving, body: LinkBody) -> Any:
    """A token of the account that a sign-in link opens; the link works once. Browsers go on with `POST /session`."""
    account, token, text = await services.accounts.redeem(body.secret)
    return {
        "account": {"id": account.id, "name": account.name},
        "roles": sorted(token.roles),
        "token": {**token_json(token), "token": text},
    }


def _account_json(view: AccountView) -> dict[str, Any]:
    return {
        "id": view.account.id,
        "name": view.account.name,
        "roles": sorted(view.account.roles),
        "state": view.account.state.value,
        "balance": {"amount": money_text(view.balance), "currency": CURRENCY_TEST},
        "created_at": time_text(view.account.created_at_ns),
    }


def _made_json(request: Request, services: Services, view: AccountView, made: MadeLink) -> dict[str, Any]:
    base = services.https_url or str(request.base_url).rstrip("/")
    return {
        "account": _account_json(view),
        "link": f"{base}/{LINK_FRAGMENT}{made.secret}",
        "link_expires_at": time_text(made.expires_at_ns),
    }
