"""Dials an Access for one end of a tunnel and waits to be joined; failures are the market's own errors."""

import socket
import ssl

from windrow_proto.errors import InvalidInput
from windrow_proto.keys import SERVER_NAMES
from windrow_proto.tunnels import market_error
from windrow_tunnel import sockets
from windrow_tunnel.errors import TunnelError


async def come(address: str, ca_pem: bytes, grant: str) -> ssl.SSLSocket:
    """Show an Access a grant; raises InvalidInput for a malformed address, OSError."""
    name = SERVER_NAMES["access"]
    try:
        connection = await sockets.approach(address, ca_pem, name)
    except ValueError:
        raise InvalidInput(f"{address!r} is no address of a relay.") from None
    await sockets.ask(connection, grant, name)
    return connection


async def joined(connection: ssl.SSLSocket) -> socket.socket:
    """Wait for the Access to join this end with the other, and take its TLS off. Raises the reason that the Access
    gives, LinkClosed, OSError; `connection` is used up."""
    try:
        return await sockets.joined(connection)
    except TunnelError as error:
        raise market_error(error) from error
