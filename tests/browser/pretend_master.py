"""A pretend Master that serves the HTTP API's shapes from made-up data, and the built console: for tests of the console
alone and for looking at its pages (`python -m tests.browser.pretend_master --neighbours 200`). Never shipped.
"""

import argparse
import asyncio
import json
import mimetypes
import os
import re
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import Body, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.browser.pretend_accesses import access_routes
from tests.browser.pretend_alerts import alert_routes, channel_routes
from tests.browser.pretend_billing import billing_routes
from tests.browser.pretend_clouds import cloud_routes
from tests.browser.pretend_ends import operator_end_routes, project_end_routes, user_end_routes
from tests.browser.pretend_fleet import fleet_routes, host_routes, reading_routes
from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_limits import limit_routes
from tests.browser.pretend_members import OPEN, member_routes
from tests.browser.pretend_people import people_routes, person
from tests.browser.pretend_queue import explain_routes, queue_routes, share_routes
from tests.browser.pretend_records import overview_routes, record_routes
from tests.browser.pretend_rental import (
    cluster_routes,
    cluster_streams,
    health_routes,
    job_routes,
    market_routes,
    template_routes,
    terminal_routes,
)
from tests.browser.pretend_resources import resource_routes
from tests.browser.pretend_secrets import secret_routes
from tests.browser.pretend_shop import shop_routes
from tests.browser.pretend_sign_in import WEIGHTY, service_routes, sign_in_routes
from tests.browser.pretend_volumes import volume_routes
from tests.browser.pretend_world import Asked, Json, World, add_host, at, make_world, token
from tests.support.ports import own_port
from tests.waiting import PATIENCE_S, poll
from windrow_master.api import handbook_routes
from windrow_master.api.console import FOR_EVER
from windrow_master.api.console import page as console_page
from windrow_master.api.headers import HEADERS

ROOT = Path(__file__).parents[2]
TOKEN = "pretend-token"
ACCOUNT = {"id": "account_1", "name": "first account"}
SECRET = "ws_pretend-secret"
OTHER_TOKEN = "pretend-token-of-another"
SESSIONS = {TOKEN: (SECRET, ACCOUNT), OTHER_TOKEN: ("ws_other-secret", {"id": "account_2", "name": "another account"})}
"""The session that a token begins: a session's secret, and whose it is."""
FIRST_READ = re.compile(r"/me\?|/(clusters|jobs)\?.*\bname=.*|/hosts\?.*\bq=.*|/.+/limits\?|/backends/[^/]+\?")
"""What a command of `windrow` reads before it changes something: a name means an id, the name of a cluster may be
taken, a user may be one's own, limits and caps that are not named stay."""
LOOKS_AT_LAST = 4
"""Turns of the loop: what was accepted is a connection two turns later."""


def make_app(world: World) -> FastAPI:
    """All routes over one world."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    if not world.people:
        world.people.append(person(ACCOUNT["id"], ACCOUNT["name"], ["operator", "provider", "renter"], "99.91"))
    app.add_middleware(Gate, world=world)
    _session_routes(app, world)
    _token_routes(app, world)
    fleet_routes(app, world)
    host_routes(app, world)
    reading_routes(app, world)
    cluster_routes(app, world)
    cluster_streams(app, world)
    terminal_routes(app, world)
    job_routes(app, world)
    queue_routes(app, world)
    explain_routes(app, world)
    share_routes(app, world)
    people_routes(app, world, OTHER_TOKEN)
    sign_in_routes(app, world)
    service_routes(app, world)
    member_routes(app, world, _whose, lambda: _session_of(OTHER_TOKEN))
    limit_routes(app, world, "token_1")
    project_end_routes(app, world)
    user_end_routes(app, world, _whose)
    operator_end_routes(app, world)
    market_routes(app, world)
    shop_routes(app, world)
    billing_routes(app, world)
    template_routes(app, world)
    volume_routes(app, world)
    secret_routes(app, world)
    resource_routes(app, world)
    cloud_routes(app, world)
    access_routes(app, world)
    health_routes(app, world)
    overview_routes(app, world)
    record_routes(app, world)
    alert_routes(app, world)
    channel_routes(app, world)
    _page_routes(app)
    return app


class Gate:
    """Lets in those who may ask, and adds the headers that the real Master answers with every page. Plain ASGI: a page
    that is left ends its streams in the middle, and Starlette's own base for middleware then leaves a coroutine
    behind."""

    def __init__(self, app: ASGIApp, world: World) -> None:
        self._app, self._world = app, world

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                # The real Master's own headers, so that a page they would break breaks here.
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = await self._refusal(Request(scope, receive))
        await (self._app if refusal is None else refusal)(scope, receive, headed)

    async def _refusal(self, request: Request) -> Response | None:
        path = request.url.path.removeprefix("/api/v1")
        if not request.url.path.startswith("/api/"):
            return None
        for prefix, told in self._world.problems.items():
            if path.startswith(prefix):
                return problem(**told)
        if request.headers.get("authorization") == f"Bearer {TOKEN}":
            if request.method == "GET" and FIRST_READ.fullmatch(f"{path}?{request.url.query}"):
                return None
            body = await request.body()
            said = json.loads(body) if body else None
            self._world.asked.append(Asked(request.method, path, dict(request.query_params), said))
            return problem(409, "conflict", "Written down", "A pretend Master does nothing for programs.")
        if self._world.is_stale and (request.method, path) in WEIGHTY:
            said = "Your last sign-in is more than ten minutes ago."
            return problem(403, "sign_in_again", "Not allowed", said)
        is_known = _asking(request) is not None and not self._world.is_signed_out
        if not is_known and path not in {"/session", "/sign-in", "/cli", *OPEN}:
            return problem(
                401, "unauthenticated", "Not signed in", "Your token is missing or not valid. Sign in again."
            )
        return None


def _asking(request: Request) -> Json | None:
    """Returns the session whose secret this request carries."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ")
    return next((account for secret, account in SESSIONS.values() if secret == given), None)


def _whose(request: Request) -> Json:
    return _asking(request) or ACCOUNT


def _session_of(token: str) -> Json:
    secret, account = SESSIONS[token]
    return {"account": account, "session": {"id": "session_1", "expires_at": at(-86_400)}, "secret": secret}


def _session_routes(app: FastAPI, world: World) -> None:
    @app.post("/api/v1/session")
    async def sign_in(body: Json = Body()) -> Response:
        if body.get("token") not in SESSIONS:
            return problem(
                401, "unauthenticated", "Not signed in", "This token is not known, or it has expired. Make another."
            )
        return JSONResponse(_session_of(body["token"]))

    @app.delete("/api/v1/session")
    async def sign_out() -> Response:
        return Response(status_code=204)

    @app.get("/api/v1/me")
    async def me(request: Request) -> Json:
        account = _whose(request)
        return {
            "account": world.project or account,
            "user": {"id": account["id"].replace("account", "user"), "name": account["name"]},
            "service": None,
            "roles": list(world.roles),
            "token": {"id": "token_1", "name": "first", "expires_at": at(-86_400)},
            "session": {"id": "session_1", "expires_at": at(-86_400)},
            "balance": {"amount": "99.912345", "currency": "CRD"},
            "master": {"version": "0.1.0", "epoch": 3, "currency_is_test": True},
        }

    @app.get("/api/v1/cli")
    async def cli() -> Json:
        here = {"url": "https://market.example:8443", "this_machine_only": False, "link_note": None}
        return here | {"command": world.command_line}


def _token_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/tokens")
    async def tokens() -> Json:
        return listed(world.tokens)

    @app.post("/api/v1/tokens")
    async def make_token(body: Json = Body()) -> Json:
        made = token(f"token_{len(world.tokens) + 1}", body["name"], body["roles"])
        world.tokens.append(made)
        return made | {"token": "wt_0123456789abcdef0123456789abcdef"}

    @app.delete("/api/v1/tokens/{token_id}")
    async def drop_token(token_id: str) -> Response:
        world.tokens = [one for one in world.tokens if one["id"] != token_id]
        return Response(status_code=204)

    @app.get("/api/v1/join-tokens")
    async def join_tokens() -> Json:
        return listed(world.join_tokens)

    @app.post("/api/v1/join-tokens")
    async def make_join_token() -> Json:
        row = {
            "id": f"jt_{len(world.join_tokens)}",
            "role": "host",
            "expires_at": at(-900),
            "created_at": at(),
            "used_by": None,
        }
        world.join_tokens.append(row)
        secret = "wj_" + "a" * 43 + "." + "0" * 32
        command = f"curl -fsS https://master.example:8443/install.sh | sudo sh -s -- --token {secret}"
        return row | {"join_token": secret, "command": command}


def built_console() -> Path | None:
    """The console as it was built: what the Master serves, else what the last build by hand left."""
    places = (ROOT / "console" / "dist", ROOT / "master" / "windrow_master" / "static")
    built = [place for place in places if (place / "index.html").is_file()]
    return max(built, key=lambda place: (place / "index.html").stat().st_mtime, default=None)


def _page_routes(app: FastAPI) -> None:
    dist = built_console() or ROOT

    @app.get("/healthz")
    async def healthz() -> Json:
        return {"ok": True}

    app.router.routes.extend(handbook_routes.root.routes)

    @app.get("/{path:path}")
    async def page(path: str) -> Response:
        asset = (dist / path).resolve()
        inside = path and asset.is_file() and asset.is_relative_to(dist)
        kept = {"Cache-Control": FOR_EVER} if path.startswith("assets/") else {}
        if inside:
            # Whole: a stream that its reader breaks off can leave the file open.
            return Response(asset.read_bytes(), headers=kept, media_type=mimetypes.guess_type(asset.name)[0])
        return console_page((dist / "index.html").read_text(), os.urandom(16).hex())


async def _serve(server: uvicorn.Server, listening: socket.socket) -> None:
    """Until it should exit; then nothing is open any more, not even what a page opened in the last moment, of which
    uvicorn does not know when it closes the others."""
    await server.serve([listening])
    for _ in range(LOOKS_AT_LAST):
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)


class Served:
    """A pretend Master on a port of this machine, in a thread of its own; can be stopped and started again."""

    def __init__(self, world: World, around: Callable[[FastAPI], Any] = lambda app: app) -> None:
        self.world = world
        self._around = around
        self.port = own_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """The address of the pretend Master."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def sign_in_url(self) -> str:
        """An address that signs in, as `windrow up` prints one, and shows the fleet."""
        return self.sign_in_at("/fleet")

    def sign_in_at(self, path: str) -> str:
        """An address that signs in and shows this screen: one page to load, not two."""
        return f"{self.url}{path}#token={TOKEN}"

    def start(self) -> None:
        """Listen, each time on the same port, which is nobody else's meanwhile."""
        config = uvicorn.Config(
            self._around(make_app(self.world)),
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            ws="wsproto",
            lifespan="off",
        )
        self._server = uvicorn.Server(config)
        listening = config.bind_socket()
        self.port = listening.getsockname()[1]
        server = self._server
        self._thread = threading.Thread(target=lambda: asyncio.run(_serve(server, listening)), daemon=True)
        self._thread.start()
        poll(lambda: server.started, what="the pretend Master listens")

    def stop(self) -> None:
        """Fall silent at once, open streams included."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(PATIENCE_S)
        self._server = None


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--neighbours", type=int, default=200)
    options = parser.parse_args()
    world = make_world(options.neighbours)
    if options.neighbours:
        add_host(
            world, "host_019a0000-0000-7000-8000-0000000000ff", "evil \u202e<b>name</b>\x07", cards=1, simulated=True
        )
    print(f"http://127.0.0.1:{options.port}/#token={TOKEN}", flush=True)
    uvicorn.run(make_app(world), host="127.0.0.1", port=options.port, log_level="warning")


if __name__ == "__main__":
    main()
