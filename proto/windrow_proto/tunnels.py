"""Tunnels: TCP from a renter to a port of a workload, joined by an Access that both ends dial. Pure.

 renter ══TLS══▶ Access ◀══TLS══ agent      each: GET /tunnel, Upgrade, Bearer GRANT; 101 when both are there
    then both end this TLS, and the Access joins the bare connections:
 renter ════════════TLS════════════▶ agent ──▶ the workload's port
    the host shows the key that it made for this tunnel, the renter says the tunnel's secret
 renter ───sealed records (windrow_tunnel), else still in TLS───▶ agent ──▶ the workload's port

A record is four bytes of length (big-endian) and so many bytes; length 0 is the end of this direction. So one direction
can end before the other, which TLS as the standard library speaks it cannot say; and an end is told from a cut. A
sealed record carries what TLS would: one of these.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from windrow_proto.errors import BadProof, InvalidInput, LinkClosed, WindrowError, from_code
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.units import KIB, SECOND

PATH: Final = "/tunnel"
PROTOCOL: Final = "windrow-tunnel/2"
"""What the connection is upgraded to; another format of what follows is another number."""
HOST_NAME: Final = "tunnel.windrow"
"""What a host's certificate for one tunnel names; the renter trusts that certificate alone, so any name would do."""
SECRET_BYTES: Final = 32
"""What a renter says first, inside TLS: it has it from the Master, and the host knows its SHA-256. So the Access, which
sees what the host is told, can neither read a tunnel nor come as its renter."""
RECORD_BYTES_MAX: Final = 256 * KIB
"""Of one record's bytes: what one read of a socket brings at most."""
RECORD_HEAD_BYTES: Final = 4
HEAD_BYTES_MAX: Final = 8 * KIB
"""Of a request's or answer's head: a grant takes some 400 bytes."""
GRANT_LIFE_NS: Final = 60 * SECOND
"""From the Master's word until both ends have to have come, with the clocks of both machines some seconds apart."""
HEAD_ENDS: Final = b"\r\n\r\n"
END: Final = bytes(RECORD_HEAD_BYTES)
ACCEPTED: Final = f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\r\n".encode()


class TunnelSide(IntEnum):
    """Who shows a grant."""

    UNSPECIFIED = 0
    RENTER = 1
    HOST = 2


@dataclass(frozen=True, slots=True)
class TunnelGrant:
    """The Master's word that these two ends may be joined. not_after_ns: wall clock, to connect by.

    worker: the one worker of an Access where it holds, whoever is connected there; empty: where its host is connected.
    """

    tunnel_id: str
    side: TunnelSide
    host_id: HostId
    workload_id: WorkloadId
    cluster_id: ClusterId
    port: int
    not_after_ns: int
    worker: str = ""


def worker_name(access_id: str, number: int) -> str:
    """How a grant names one worker of an Access."""
    return f"{access_id}/{number}"


def secret_digest(secret: bytes) -> bytes:
    """What a host is told of a tunnel's secret."""
    return hashlib.sha256(secret).digest()


def judge_secret(said: bytes, digest: bytes) -> None:
    """Return if this is the secret of which the Master told the digest; raises BadProof."""
    if not hmac.compare_digest(secret_digest(said), digest):
        raise BadProof("Whoever came through the Access is not the renter of this tunnel.")


def record(data: bytes) -> bytes:
    """Bytes as one record: from 1 to RECORD_BYTES_MAX of them."""
    return len(data).to_bytes(RECORD_HEAD_BYTES, "big") + data


class RecordReader:
    """Takes records apart as they come, in any pieces, and keeps nothing but a part of a length."""

    __slots__ = ("_head", "_left", "is_ended")

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self.is_ended = False

    def feed(self, data: bytes | memoryview) -> list[memoryview]:
        """What these bytes carry, in order; `is_ended` when the direction has ended. Raises InvalidInput for what is no
        record, and for bytes after the end."""
        found: list[memoryview] = []
        rest = memoryview(data)
        while rest:
            if self.is_ended:
                raise InvalidInput("Bytes came after the end of a tunnel's direction.")
            if self._left:
                found.append(rest[: self._left])
                self._left -= len(found[-1])
                rest = rest[len(found[-1]) :]
                continue
            wanted = RECORD_HEAD_BYTES - len(self._head)
            self._head += bytes(rest[:wanted])
            rest = rest[wanted:]
            if len(self._head) == RECORD_HEAD_BYTES:
                self._left = int.from_bytes(self._head, "big")
                self._head = b""
                self.is_ended = not self._left
                if self._left > RECORD_BYTES_MAX:
                    raise InvalidInput(f"A record of {self._left} bytes; the limit is {RECORD_BYTES_MAX}.")
        return found


def request(grant: str) -> bytes:
    """What either end says first."""
    lines = (f"GET {PATH} HTTP/1.1", "Host: access.windrow", "Connection: Upgrade", f"Upgrade: {PROTOCOL}")
    return "\r\n".join((*lines, f"Authorization: Bearer {grant}", "", "")).encode()


def judge_answer(head: bytes, body: bytes) -> None:
    """Return if the Access has joined the ends; raises what its problem names, or LinkClosed.

    head: up to and with the empty line; body: what of a refusal's JSON has come.
    """
    status = head.split(b"\r\n", 1)[0].split(b" ")
    if len(status) >= 2 and status[0] == b"HTTP/1.1" and status[1] == b"101":
        return
    try:
        problem = json.loads(body)
        raise from_code(str(problem["code"]), str(problem["detail"])[:500])
    except (ValueError, KeyError, TypeError):
        words = b" ".join(status[1:])[:100].decode("ascii", "replace")
        raise LinkClosed(f"The Access refused the tunnel: {words or 'no answer'}.") from None


def problem(error: WindrowError) -> bytes:
    """A refusal as an HTTP/1.1 answer that closes the connection."""
    said = {"type": "about:blank", "status": error.http, "code": error.code, "detail": error.detail}
    body = json.dumps(said).encode()
    head = (
        f"HTTP/1.1 {error.http} {type(error).__name__}",
        "Content-Type: application/problem+json",
        f"Content-Length: {len(body)}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", "")).encode() + body
