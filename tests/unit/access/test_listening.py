"""Connections from outside: each is served by itself."""

import asyncio
import socket

from tests.waiting import PATIENCE_S
from windrow_access.listening import accept, listen, port_of


async def test_a_connection_that_crashes_takes_no_other_with_it():
    async def serve(connection, network):
        with connection:
            said = await asyncio.get_running_loop().sock_recv(connection, 1)
            if said == b"!":
                raise ValueError("what nobody has thought of")
            await asyncio.get_running_loop().sock_sendall(connection, network.encode())

    listener = listen("127.0.0.1", 0, "tests", "--none")
    async with asyncio.TaskGroup() as group, asyncio.timeout(PATIENCE_S):
        accepting = group.create_task(accept(listener, "test", lambda network: True, serve, group))
        answers = []
        for word in (b"!", b"?"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            writer.write(word)
            answers.append(await reader.read())
            writer.close()
            await writer.wait_closed()
        accepting.cancel()
    listener.close()
    assert answers == [b"", b"127.0.0.1"]


def test_what_is_accepted_sends_the_rest_of_an_answer_at_once():
    listener = listen("127.0.0.1", 0, "tests", "--none")
    asking = socket.create_connection(listener.getsockname())
    listener.setblocking(True)
    accepted, _ = listener.accept()
    assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    for one in (accepted, asking, listener):
        one.close()
