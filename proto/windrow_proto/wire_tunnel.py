"""A tunnel's grant as the text that is shown for it, and back: signed by the Master, in base64url. Pure."""

import base64
import binascii

from windrow_proto import wire_fields as fields
from windrow_proto.errors import Expired, InvalidInput
from windrow_proto.ids import ClusterId
from windrow_proto.keys import DOMAIN_TUNNEL, SigningKey, verify_signature
from windrow_proto.tunnels import TunnelGrant, TunnelSide
from windrow_proto.v1 import link_pb2

GRANT_TEXT_MAX = 4_096


def sign_grant(grant: TunnelGrant, signing: SigningKey) -> str:
    """The grant as its holder shows it, as `Authorization: Bearer`."""
    message = link_pb2.TunnelGrant(
        tunnel_id=grant.tunnel_id,
        side=link_pb2.TunnelSide.Name(grant.side),
        host_id=grant.host_id,
        workload_id=grant.workload_id,
        cluster_id=grant.cluster_id,
        port=grant.port,
        not_after_ns=grant.not_after_ns,
        worker=grant.worker,
    )
    covered = message.SerializeToString()
    signed = link_pb2.SignedTunnelGrant(grant=covered, signature=signing.sign(DOMAIN_TUNNEL, covered))
    return base64.urlsafe_b64encode(signed.SerializeToString()).decode().rstrip("=")


def read_grant(text: str, master_public: bytes, wall_ns: int) -> TunnelGrant:
    """The grant, if this Master signed it and it is not over; raises InvalidInput, BadProof or Expired."""
    if len(text) > GRANT_TEXT_MAX:
        raise InvalidInput(f"A grant has at most {GRANT_TEXT_MAX} characters.")
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput("A grant is base64url; this is something else.") from error
    signed = fields.parse(link_pb2.SignedTunnelGrant, data, GRANT_TEXT_MAX)
    verify_signature(master_public, DOMAIN_TUNNEL, signed.grant, signed.signature)
    message = fields.parse(link_pb2.TunnelGrant, signed.grant, GRANT_TEXT_MAX)
    grant = TunnelGrant(
        tunnel_id=fields.text(message.tunnel_id),
        side=fields.known(TunnelSide, message.side),
        host_id=fields.host_id(message.host_id),
        workload_id=fields.workload_id(message.workload_id),
        cluster_id=ClusterId(fields.text(message.cluster_id)),
        port=fields.port(message.port),
        not_after_ns=message.not_after_ns,
        worker=fields.text(message.worker),
    )
    if wall_ns >= grant.not_after_ns:
        raise Expired("This grant is over; ask the Master for another one.", subject=grant.tunnel_id)
    return grant
