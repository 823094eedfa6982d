"""The renter's end of a tunnel in a daemon: dials an Access with the Master's grant, then carries bytes both ways.

The one place, beside the sdk's own, that knows what this end says: records here, and who uses it sees bytes.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

from windrow_proto.connection import FLUSH_S, Connection
from windrow_proto.errors import LinkClosed, Unavailable, WindrowError
from windrow_proto.tunnel_dial import come, joined
from windrow_proto.tunnels import HOST_NAME, market_error
from windrow_tunnel.errors import Malformed
from windrow_tunnel.sockets import client_context
from windrow_tunnel.wire import END, RECORD_BYTES_MAX, RecordReader, record

DIAL_S: Final = 8.0
"""For the Access, its handshake included."""
JOIN_S: Final = 15.0
"""For the Access to join this end with the host's, which is there already; it gives up itself after ten."""


@dataclass(frozen=True, slots=True)
class RenterTicket:
    """The address to dial, and the proofs to show there. address: host:port; ca_pem: the authority of that Access;
    host_pem: the certificate of the host; secret: the first bytes to it."""

    address: str
    grant: str = field(repr=False)
    ca_pem: bytes = field(repr=False)
    host_pem: bytes = field(repr=False)
    secret: bytes = field(repr=False)


class RenterSide(Protocol):
    """The party that this end carries for."""

    def take(self, data: memoryview) -> None:
        """Bytes of the workload's; only valid during the call."""

    def take_end(self) -> None:
        """The workload sends no more."""

    def hold(self) -> None:
        """The tunnel does not take more: send no more for now."""

    def go_on(self) -> None:
        """It does again."""

    def cut(self, error: WindrowError) -> None:
        """The tunnel is gone, before or after its ends; the last call."""


class RenterEnd(Connection):
    """One tunnel's. `dial`, then `carry` and `end` as bytes come; `close` or `abort` in any case."""

    def __init__(self, side: RenterSide) -> None:
        super().__init__()
        self._side = side
        self._reader = RecordReader()
        self._refusal: WindrowError | None = None
        self._is_end_told = False

    async def dial(self, ticket: RenterTicket) -> None:
        """Returns when the host is there. Raises Unavailable, LinkClosed or what the Access refuses it with."""
        try:
            async with asyncio.timeout(DIAL_S):
                access = await come(ticket.address, ticket.ca_pem, ticket.grant)
            async with asyncio.timeout(JOIN_S):
                raw = await joined(access)
                try:
                    await asyncio.get_running_loop().create_connection(
                        lambda: self,
                        sock=raw,
                        ssl=client_context(ticket.host_pem),
                        server_hostname=HOST_NAME,
                        ssl_shutdown_timeout=FLUSH_S,
                    )
                except BaseException:
                    raw.close()
                    raise
        except (OSError, TimeoutError) as error:  # ssl.SSLError is one
            raise Unavailable(
                f"The relay at {ticket.address} does not join the tunnel: {error or 'no answer'}."
            ) from error
        self.write(ticket.secret)

    def carry(self, data: bytes) -> None:
        """Bytes for the workload."""
        for start in range(0, len(data), RECORD_BYTES_MAX):
            self.write(record(data[start : start + RECORD_BYTES_MAX]))

    def end(self) -> None:
        """No more of them; what comes back still may."""
        self.write(END)

    # --- called by the loop ------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Records."""
        if self._refusal is not None:
            return
        try:
            for piece in self._reader.feed(data):
                self._side.take(piece)
        except Malformed as error:
            self._refusal = market_error(error)
            self.abort()
            return
        if self._reader.is_ended and not self._is_end_told:
            self._is_end_told = True
            self._side.take_end()

    def connection_lost(self, error: Exception | None) -> None:
        """The Access or the host has cut it, or this end has closed it."""
        super().connection_lost(error)
        if self._transport is not None:
            self._side.cut(self._refusal or LinkClosed("The host or its relay has cut the tunnel."))

    def pause_writing(self) -> None:
        """The tunnel does not take more."""
        self._side.hold()

    def resume_writing(self) -> None:
        """It does again."""
        self._side.go_on()
