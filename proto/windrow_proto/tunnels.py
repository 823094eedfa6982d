"""Tunnels: TCP from a renter to a port of a workload, joined by an Access that both ends dial. Pure.

 renter ══TLS══▶ Access ◀══TLS══ agent      each: GET /tunnel, Upgrade, Bearer GRANT; 101 when both are there
    then both end this TLS, and the Access joins the bare connections:
 renter ════════════TLS════════════▶ agent ──▶ the workload's port
    the host shows the key that it made for this tunnel, the renter says the tunnel's secret
 renter ───sealed records (windrow_tunnel), else still in TLS───▶ agent ──▶ the workload's port

windrow_tunnel has what follows the grant: the bytes on the wire, TLS, sealed records, and the pump.
"""

import hashlib
import hmac
import json
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from windrow_proto.errors import BadProof, InvalidInput, LinkClosed, WindrowError, from_code
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.units import SECOND
from windrow_tunnel.errors import Malformed, Refused, TunnelError

HOST_NAME: Final = "tunnel.windrow"
"""The name in a host's certificate for one tunnel; the renter trusts that certificate alone, so any name would do."""
SECRET_BYTES: Final = 32
"""The secret that a renter says first, inside TLS: it has it from the Master, and the host knows its SHA-256. So the
Access, which sees what the host is told, can neither read a tunnel nor come as its renter."""
GRANT_LIFE_NS: Final = 60 * SECOND
"""From the Master's word until both ends have to have come, with the clocks of both machines some seconds apart."""


class TunnelSide(IntEnum):
    """The end that shows a grant."""

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
    """The name of one worker of an Access in a grant."""
    return f"{access_id}/{number}"


def secret_digest(secret: bytes) -> bytes:
    """The digest of a tunnel's secret, which its host is told."""
    return hashlib.sha256(secret).digest()


def judge_secret(said: bytes, digest: bytes) -> None:
    """Return if this is the secret of which the Master told the digest; raises BadProof."""
    if not hmac.compare_digest(secret_digest(said), digest):
        raise BadProof("Whoever came through the relay is not the renter of this tunnel.")


def market_error(error: TunnelError) -> WindrowError:
    """The market's own error for one of a tunnel's: the reason of an Access where it gave one."""
    if isinstance(error, Malformed):
        return InvalidInput(str(error))
    if isinstance(error, Refused) and {"code", "detail"} <= error.problem.keys():
        return from_code(str(error.problem["code"]), str(error.problem["detail"])[:500])
    return LinkClosed(str(error))


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
