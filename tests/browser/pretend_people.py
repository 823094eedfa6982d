"""The pretend Master's accounts: added, credited, suspended and resumed, with sign-in links that work once."""

from typing import Any

from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at, token

LINK = "wl_pretend-link-secret"


def person(account_id: str, name: str, roles: list[str], amount: str) -> Json:
    """One account."""
    balance = {"amount": amount, "currency": "CRD"}
    return {
        "id": account_id,
        "name": name,
        "roles": sorted(roles),
        "state": "active",
        "balance": balance,
        "created_at": at(86_400),
    }


def people_routes(app: FastAPI, world: World, opened_token: str) -> None:
    """Accounts, and the link that opens one with this token."""

    def found(account_id: str) -> Json:
        return next(one for one in world.people if one["id"] == account_id)

    def stand(account_id: str, state: str) -> Json:
        """The user for whom the account was made is disabled while it is suspended."""
        for user in world.users:
            if user["id"] == account_id.replace("account", "user"):
                user["is_disabled"] = state == "suspended"
        one = found(account_id)
        one["state"] = state
        return one

    def made(one: Json) -> JSONResponse:
        link = f"https://market.example:8443/#sign-in={LINK}"
        return JSONResponse({"account": one, "link": link, "link_expires_at": at(-3 * 86_400)}, 201)

    @app.get("/api/v1/accounts")
    async def people() -> Json:
        return listed(world.people)

    @app.post("/api/v1/accounts")
    async def add(body: Json = Body()) -> Any:
        if any(one["name"] == body["name"] for one in world.people):
            return problem(409, "conflict", "Conflict", f"There is an account {body['name']} already.")
        one = person(f"account_{len(world.people) + 1}", body["name"], body["roles"], f"{body.get('credit', '0')}.00")
        world.people.append(one)
        return made(one)

    @app.post("/api/v1/accounts/{account_id}/link")
    async def link(account_id: str) -> Any:
        return made(found(account_id))

    @app.post("/api/v1/accounts/{account_id}/credit")
    async def credit(account_id: str, body: Json = Body()) -> Json:
        one = found(account_id)
        one["balance"]["amount"] = f"{float(one['balance']['amount']) + float(body['amount']):.2f}"
        return one

    @app.post("/api/v1/accounts/{account_id}/suspend")
    async def suspend(account_id: str) -> Json:
        return stand(account_id, "suspended")

    @app.post("/api/v1/accounts/{account_id}/resume")
    async def resume(account_id: str) -> Json:
        return stand(account_id, "active")

    @app.post("/api/v1/sign-in")
    async def redeem(body: Json = Body()) -> Any:
        if body["secret"] != LINK or world.used_links:
            detail = "This sign-in link was used, has expired or was replaced. Ask an operator for a new one."
            return problem(401, "unauthenticated", "Not signed in", detail)
        world.used_links.append(LINK)
        opened = token("token_9", "sign-in link", ["renter"]) | {"token": opened_token}
        account = {"id": "account_2", "name": "another account"}
        return JSONResponse({"account": account, "roles": ["renter"], "token": opened}, 201)
