"""Terminals over a WebSocket with a scripted host: who gets a ticket, what it opens, and what ends it."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import pytest

from tests.unit.clusters.test_routes import HOST, ScriptedStream
from tests.unit.master_api.described import assert_described
from tests.waiting import poll_async
from windrow_master.api import terminal_routes
from windrow_master.network import terminals as service
from windrow_master.network.terminal_tickets import TerminalTicket
from windrow_master.shares import ShareLimits
from windrow_proto.errors import LinkClosed
from windrow_proto.messages import ChannelClose, ChannelData
from windrow_proto.model import ChannelPurpose
from windrow_proto.terminals import SIZE_STREAM, TerminalSize, encode_size
from windrow_proto.units import SECOND

FOREIGN = ("http://evil.example", "https://master.evil.example", "null", "", None)
OLD = "This agent serves no channel for unspecified."


class Shell:
    """A host's channel: its shell has started, and echoes."""

    def __init__(self):
        self.arrived: asyncio.Queue[ChannelData | ChannelClose | Exception] = asyncio.Queue()
        self.arrived.put_nowait(ChannelData(b""))
        self.sent, self.closings = [], []

    async def send(self, data, stream=0):
        self.sent.append((stream, data))
        if stream == 0:
            self.arrived.put_nowait(ChannelData(data, 1))

    async def receive(self):
        step = await self.arrived.get()
        if isinstance(step, Exception):
            raise step
        return step

    async def close(self, closing):
        self.closings.append(closing)


class Browser:
    """The browser's end of one WebSocket, below any server."""

    def __init__(self, app, path, ticket, origin="http://master", host="master", scheme="ws"):
        headers = [(b"host", host.encode())] + ([] if origin is None else [(b"origin", origin.encode())])
        self._scope = {
            "type": "websocket",
            "scheme": scheme,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 9),
            "server": ("master", 80),
            "subprotocols": ticket if isinstance(ticket, list) else [terminal_routes.PROTOCOL, ticket],
        }
        self._app = app
        self.heard: asyncio.Queue[dict] = asyncio.Queue()
        self._says: asyncio.Queue[dict] = asyncio.Queue()
        self.say({"type": "websocket.connect"})

    def say(self, message):
        self._says.put_nowait(message)

    def type(self, data):
        self.say({"type": "websocket.receive", "bytes": data})

    def text(self, text):
        self.say({"type": "websocket.receive", "text": text, "bytes": None})

    async def run(self):
        await self._app(self._scope, self._says.get, self.heard.put)

    async def hears(self):
        async with asyncio.timeout(10):
            return await self.heard.get()


@asynccontextmanager
async def opened(site, ticket, cluster_id, **more):
    browser = Browser(site.client._transport.app, f"/api/v1/clusters/{cluster_id}/terminal", ticket, **more)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(browser.run())
        yield browser
        browser.say({"type": "websocket.disconnect", "code": 1001})
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running), 5)
        running.cancel()


async def ask(site, cluster_id, **body):
    return await site.client.post(f"/api/v1/clusters/{cluster_id}/terminal", json=body)


async def ticket_of(site, cluster_id):
    return (await ask(site, cluster_id)).json()["ticket"]


async def ended(browser):
    """The last words to it."""
    while "ended" not in ((message := await browser.hears()).get("text") or ""):
        assert message["type"] != "websocket.close"
    return json.loads(message["text"])


async def rows(site, action):
    return [row for row in (await site.get("/audit"))["items"] if row["action"] == action]


async def test_a_ticket_opens_one_terminal_that_carries_keys_size_and_output(site):
    cluster_id, spec = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    answer = await ask(site, cluster_id)
    assert_described(answer, terminal_routes.TerminalOut, 201)
    assert answer.headers["cache-control"] == "no-store"
    async with opened(site, answer.json()["ticket"], cluster_id) as browser:
        accepted = await browser.hears()
        assert (accepted["type"], accepted["subprotocol"]) == ("websocket.accept", "windrow.terminal")
        assert json.loads((await browser.hears())["text"]) == {"open": True}
        browser.text('{"columns": 120, "rows": 40}')
        browser.type("ls é\n".encode())
        assert (await browser.hears())["bytes"] == "ls é\n".encode()
    ((host_id, opening),) = site.broker.opened
    assert (host_id, opening.purpose, opening.workload_id) == (HOST, ChannelPurpose.TERMINAL, spec.workload_id)
    assert opening == type(opening)(spec.workload_id, ChannelPurpose.TERMINAL), "nothing else reaches the host"
    sizes = [data for stream, data in shell.sent if stream == SIZE_STREAM]
    assert sizes == [encode_size(TerminalSize(80, 24)), encode_size(TerminalSize(120, 40))]
    assert shell.closings == [ChannelClose()]
    (begun,), (over,) = await rows(site, "terminal.open"), await rows(site, "terminal.end")
    assert begun["subject"] == over["subject"] == cluster_id and begun["fields"]["host"] == HOST
    assert over["fields"].items() >= {"bytes_in": "6", "bytes_out": "6"}.items()
    events = (await site.get("/events", subject=cluster_id))["items"]
    assert "terminal.ended" in [one["kind"] for one in events]


@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_page_of_another_origin_opens_none_with_a_right_ticket(site, origin):
    cluster_id, _ = await site.running()
    async with opened(site, await ticket_of(site, cluster_id), cluster_id, origin=origin) as browser:
        assert (await browser.hears())["type"] == "websocket.close"
    assert site.broker.opened == []


@pytest.mark.parametrize(
    ("origin", "scheme", "is_own"),
    [("http://master", "wss", False), ("https://master", "wss", True), ("https://master", "ws", True)],
)
async def test_over_tls_the_page_came_over_tls_too(site, origin, scheme, is_own):
    cluster_id, _ = await site.running()
    site.broker.streams = [Shell()]
    secret = await ticket_of(site, cluster_id)
    async with opened(site, secret, cluster_id, origin=origin, scheme=scheme) as browser:
        assert ((await browser.hears())["type"] == "websocket.accept") is is_own


async def test_a_ticket_is_used_once_and_soon_and_for_its_own_cluster(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [Shell()]
    used, late, elsewhere = [await ticket_of(site, cluster_id) for _ in range(3)]
    async with opened(site, used, cluster_id) as browser:
        assert (await browser.hears())["type"] == "websocket.accept"
        async with opened(site, used, cluster_id) as again:
            assert (await again.hears())["type"] == "websocket.close"
    for secret, place in ((elsewhere, "cluster_other"), (elsewhere, cluster_id), ("", cluster_id), ("x", cluster_id)):
        async with opened(site, secret, place) as browser:
            assert (await browser.hears())["type"] == "websocket.close"
    site.clock.advance(31 * SECOND)
    async with opened(site, late, cluster_id) as browser:
        assert (await browser.hears())["type"] == "websocket.close"
    for protocols in ([], ["windrow.terminal"], [await ticket_of(site, cluster_id), "windrow.terminal"]):
        async with opened(site, protocols, cluster_id) as browser:
            assert (await browser.hears())["type"] == "websocket.close"
    assert len(site.broker.opened) == 1


async def test_the_socket_needs_its_ticket_whatever_token_it_shows(site):
    cluster_id, _ = await site.running()
    browser = Browser(site.client._transport.app, f"/api/v1/clusters/{cluster_id}/terminal", ["windrow.terminal"])
    browser._scope["headers"].append((b"authorization", site.client.headers["authorization"].encode()))
    await browser.run()
    assert (await browser.hears())["type"] == "websocket.close"


async def test_no_other_path_is_a_websocket(site):
    for path in ("/api/v1/clusters", "/", "/api/v1/clusters/x/exec", "/api/v1/clusters/x/terminal\n"):
        browser = Browser(site.client._transport.app, path, "x")
        await browser.run()
        assert (await browser.hears())["type"] == "websocket.close"


async def test_a_session_that_ended_ends_its_terminal(site):
    cluster_id, _ = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    is_allowed = True

    async def allowed():
        return is_allowed

    principal = await site.rooms.services.identity.authenticate(site.client.headers["authorization"].split()[1])
    ticket = TerminalTicket(principal, cluster_id, 0, allowed)
    issued = await site.rooms.services.terminals.issue(ticket)
    async with opened(site, issued.secret, cluster_id) as browser:
        await poll_async(lambda: shell.sent)
        is_allowed = False
        site.clock.advance(2 * SECOND)
        assert (await ended(browser)) == {"ended": service.GONE}
    assert shell.closings


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (ChannelClose(exit_code=3), {"ended": "The shell has ended.", "exit_code": 3}),
        (ChannelClose("unavailable", "The daemon is gone."), {"ended": "The daemon is gone.", "code": "unavailable"}),
        (LinkClosed("The line broke."), {"ended": "The line broke.", "code": "link_closed"}),
    ],
)
async def test_what_ends_at_the_host_is_said(site, step, said):
    cluster_id, _ = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        await poll_async(lambda: shell.sent)
        shell.arrived.put_nowait(step)
        assert await ended(browser) == said


async def test_a_deleted_machine_ends_its_terminal(site):
    cluster_id, _ = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        await poll_async(lambda: shell.sent)
        assert (await site.client.delete(f"/api/v1/clusters/{cluster_id}")).status_code < 300
        assert await ended(browser) == {"ended": service.ENDED}


async def test_an_hour_without_a_byte_ends_it(site):
    cluster_id, _ = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        await poll_async(lambda: shell.sent)
        await asyncio.sleep(0)
        site.clock.advance(service.IDLE_NS)
        assert await ended(browser) == {"ended": service.IDLE}


async def test_an_older_agent_is_named_as_the_reason(site):
    cluster_id, _ = await site.running()
    site.broker.streams = [ScriptedStream([ChannelClose("invalid_input", OLD)])]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        assert await ended(browser) == {"ended": service.OLDER, "code": "conflict"}


async def test_a_host_that_is_away_is_named_as_the_reason(site):
    cluster_id, _ = await site.running()
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        assert (await ended(browser))["code"] == "host_unreachable"


@pytest.mark.parametrize(
    "text", ["{}", "nonsense", '{"columns": 0, "rows": 1}', '{"columns": 80, "rows": 1e9}', '{"taken": -1}', "[" * 9000]
)
async def test_a_message_that_is_no_size_ends_it(site, text):
    cluster_id, _ = await site.running()
    shell = Shell()
    site.broker.streams = [shell]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        browser.text(text)
        while (message := await browser.hears())["type"] != "websocket.close":
            pass
        assert message["code"] == 1008
    assert shell.closings


async def test_a_browser_that_shows_nothing_is_sent_no_more_than_a_mebibyte(site):
    cluster_id, _ = await site.running()
    shell, piece = Shell(), b"x" * 65_536
    site.broker.streams = [shell]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id) as browser:
        await poll_async(lambda: shell.sent)
        for _ in range(40):
            shell.arrived.put_nowait(ChannelData(piece, 1))
        await poll_async(lambda: browser.heard.qsize() == 2 + 17)
        await asyncio.sleep(0.05)
        assert browser.heard.qsize() == 2 + 17
        browser.text('{"taken": 131072}')
        await poll_async(lambda: browser.heard.qsize() == 2 + 19)


async def test_an_account_has_a_bounded_number_of_terminals(site):
    cluster_id, _ = await site.running()
    site.rooms.services.terminals.terminals.limits = ShareLimits(limit=1, per_account=1, reserve=0)
    shell = Shell()
    site.broker.streams = [shell, Shell()]
    async with opened(site, await ticket_of(site, cluster_id), cluster_id):
        await poll_async(lambda: shell.sent)
        async with opened(site, await ticket_of(site, cluster_id), cluster_id) as second:
            said = await ended(second)
    assert said["code"] == "too_many"
    assert site.rooms.services.terminals.terminals.taken == 0


async def test_none_for_what_does_not_run_or_for_a_member_that_is_not_there(site):
    cluster_id, _ = await site.running()
    assert (await ask(site, cluster_id, rank=3)).status_code == 404
    assert (await ask(site, cluster_id, rank=-1)).status_code == 422
    await site.client.delete(f"/api/v1/clusters/{cluster_id}")
    assert (await ask(site, cluster_id)).status_code == 409
