"""Encrypts the values of environment variables for the database, to the Master's own key; their names stay readable.

 asked for ──▶ whole: values, and the secret of the members ──closed──▶ row: names, `sealed` ──whole──▶ command, sealed
 to its host; what is shown to its renter. At the end `sealed` is emptied.

Whoever has the Master's signing key opens them: several Masters share that key, a copy of the database has it not. Each
is bound to what it belongs to, so that it opens for nothing else. Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from windrow_master.clusters.model import MEMBERS_SECRET, Cluster, names_of, sealed_for
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.sealed import SealKey

JOB: Final = "WINDROW_JOB_ID"
ATTEMPT: Final = "WINDROW_ATTEMPT"
INDEX: Final = "WINDROW_ARRAY_INDEX"
SIZE: Final = "WINDROW_ARRAY_SIZE"
SET_BY_MASTER: Final = frozenset({JOB, ATTEMPT, INDEX, SIZE})
"""Variables of a job's work: an id and numbers, which no job's own environment may have."""
_JOB_ID: Final = re.compile(r"job_[0-9a-f]{32}")
_NUMBER: Final = re.compile(r"[0-9]{1,4}")


def in_clear(asked: Mapping[str, str]) -> frozenset[str]:
    """Return the variables whose values are sent to a host unsealed: a job's id and numbers, which the Master sets.
    They are no secrets, and sealing them takes a tenth of the time of starting an array's copy. The environment of a
    machine that a renter creates has no job id: all of it is sealed."""
    if _JOB_ID.fullmatch(asked.get(JOB, "")) is None:
        return frozenset()
    return frozenset(one for one in SET_BY_MASTER & asked.keys() if one == JOB or _NUMBER.fullmatch(asked[one]))


def sealed(key: SealKey, values: Mapping[str, str], owner: str) -> bytes:
    """Return the sealed values as a row keeps them; empty: there are none. owner: whose they are. Raises
    InvalidInput for too many."""
    return key.seal_values(values, sealed_for(owner)) if values else b""


def opened(key: SealKey, kept: bytes, owner: str) -> dict[str, str]:
    """The values; none where none are kept any more. Raises InvalidInput where another key sealed them."""
    try:
        return key.open_values(kept, sealed_for(owner)) if kept else {}
    except BadProof:
        words = "This Master's key is not the one that its environment was sealed to"
        raise InvalidInput(f"{words}; create it again, with the values.", subject=owner) from None


def closed(key: SealKey, cluster: Cluster) -> Cluster:
    """A whole cluster as its row keeps it."""
    values = dict(cluster.request.env) | ({MEMBERS_SECRET: cluster.secret} if cluster.secret else {})
    request = cluster.request
    if request.env:
        request = replace(request, env=names_of(request.env))
    return replace(cluster, request=request, secret=None, sealed=sealed(key, values, cluster.cluster_id))


def whole(key: SealKey, cluster: Cluster) -> Cluster:
    """With its values and its secret, as long as they are kept. Raises InvalidInput."""
    if not cluster.sealed:
        return cluster
    values = opened(key, cluster.sealed, cluster.cluster_id)
    secret = values.pop(MEMBERS_SECRET, None)
    return replace(cluster, request=replace(cluster.request, env=values), secret=secret, sealed=b"")
