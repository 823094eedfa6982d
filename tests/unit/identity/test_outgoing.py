"""Calls of other servers: which of a name's addresses are tried, in which order and for how long."""

import asyncio
import socket
from collections.abc import Sequence

import httpx2
import pytest

from windrow_master.outgoing import Outgoing, alternating

LAST = "93.184.215.14"
DEAD = ["2606:2800:21f::1", "2606:2800:21f::2", "2606:2800:21f::3"]


@pytest.mark.parametrize(
    ("found", "tried"),
    [
        (["a:", "b:", "c:", "1", "2"], ["a:", "1", "b:", "2", "c:"]),
        (["1", "2", "a:"], ["1", "a:", "2"]),
        (["1"], ["1"]),
        ([], []),
    ],
)
def test_the_families_of_addresses_take_turns(found: Sequence[str], tried: list[str]) -> None:
    assert alternating(found) == tried


async def test_dead_addresses_of_one_family_do_not_hide_the_other() -> None:
    async def reply(request: httpx2.Request) -> httpx2.Response:
        if request.url.host != LAST:
            raise httpx2.ConnectTimeout("no route")
        return httpx2.Response(200, json={"at": request.url.host})

    async def look_up(host: str, port: int) -> Sequence[str]:
        return [*DEAD, LAST]

    answer = await Outgoing(httpx2.MockTransport(reply), look_up).ask("GET", "https://login.example.org/", "")
    assert answer.said == {"at": LAST}


async def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        writer.close()

    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with socket.socket() as hole, socket.socket() as first, socket.socket() as second:
            hole.bind(("127.0.0.2", port))
            hole.listen(0)
            for one in (first, second):  # who comes after these gets no answer at all
                one.setblocking(False)
                one.connect_ex(("127.0.0.2", port))
            found = await Outgoing(look_up=look_up, connect_s=0.2).ask("GET", f"http://localhost:{port}/", "localhost")
    assert found.status == 200
