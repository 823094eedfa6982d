"""The report that a host signs when a lease's cache was wiped: what the signature covers, making it, checking it. Pure.

Whoever has the host's public key can check it later, from the event alone.
"""

import base64
import json
from collections.abc import Mapping
from typing import Final

from windrow_proto.errors import BadProof
from windrow_proto.ids import ClusterId, HostId, WorkloadId
from windrow_proto.keys import DOMAIN_WIPE, SigningKey, verify_signature
from windrow_proto.model import Event

CODE: Final = "workload.wiped"
SIGNATURE: Final = "signature"


def report(
    key: SigningKey,
    host_id: HostId,
    workload_id: WorkloadId,
    cluster_id: ClusterId,
    at_ns: int,
    done: Mapping[str, str],
) -> Event:
    """An event on the cluster's page. done: what the wipe did, values as text."""
    fields = {**done, "host": host_id, "workload": workload_id, "at_ns": str(at_ns)}
    signature = base64.b64encode(key.sign(DOMAIN_WIPE, _covered(fields))).decode()
    told = f"The keys of this lease's cache were destroyed; {done.get('files', '0')} sealed files removed"
    left = done.get("left", "0")
    told += "" if left == "0" else f", {left} could not be"
    return Event(CODE, at_ns, cluster_id, told, {**fields, SIGNATURE: signature})


def verify(public: bytes, fields: Mapping[str, str]) -> None:
    """Return if the host with this key signed this report; raise BadProof otherwise."""
    try:
        signature = base64.b64decode(fields[SIGNATURE], validate=True)
    except (KeyError, ValueError) as error:
        raise BadProof("This wipe report bears no signature.") from error
    verify_signature(public, DOMAIN_WIPE, _covered(fields), signature)


def _covered(fields: Mapping[str, str]) -> bytes:
    unsigned = {name: value for name, value in fields.items() if name != SIGNATURE}
    return json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()
