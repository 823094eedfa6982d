"""The values of environments as the database has them: sealed to the Master's own key, beside their names in the open.

 asked for ──▶ whole: values, and the secret of the members ──closed──▶ row: names, `sealed` ──whole──▶ command, sealed
 to its host; what is shown to its renter. At the end `sealed` is emptied.

Whoever has the Master's signing key opens them: several Masters share that key, a copy of the database has it not. Each
is bound to what it belongs to, so that it opens for nothing else. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from windrow_master.clusters.model import Cluster
from windrow_proto.errors import BadProof, InvalidInput
from windrow_proto.ids import AccountId
from windrow_proto.sealed import SealKey, seal_values

SECRET: Final = ""
"""Under which name a cluster's values hold its members' secret: no variable is called so."""


def names_of(env: Iterable[str]) -> dict[str, str]:
    """What a row keeps in the open."""
    return dict.fromkeys(env, "")


def of_template(account_id: AccountId, name: str) -> str:
    """Whose the values of a template are."""
    return f"{account_id}|{name}"


def sealed(key: SealKey, values: Mapping[str, str], owner: str) -> bytes:
    """What a row keeps of values; empty: there are none. owner: whose they are. Raises InvalidInput for too many."""
    return seal_values(key.public, values, f"env|{owner}") if values else b""


def opened(key: SealKey, kept: bytes, owner: str) -> dict[str, str]:
    """The values; none where none are kept any more. Raises InvalidInput where another key sealed them."""
    try:
        return key.open_values(kept, f"env|{owner}") if kept else {}
    except BadProof:
        words = "This Master's key is not the one that its environment was sealed to"
        raise InvalidInput(f"{words}; ask for it again, with the values.", subject=owner) from None


def closed(key: SealKey, cluster: Cluster) -> Cluster:
    """A whole cluster as its row keeps it."""
    values = dict(cluster.request.env) | ({SECRET: cluster.secret} if cluster.secret else {})
    request = replace(cluster.request, env=names_of(cluster.request.env))
    return replace(cluster, request=request, secret=None, sealed=sealed(key, values, cluster.cluster_id))


def whole(key: SealKey, cluster: Cluster) -> Cluster:
    """With its values and its secret, as long as they are kept. Raises InvalidInput."""
    if not cluster.sealed:
        return cluster
    values = opened(key, cluster.sealed, cluster.cluster_id)
    secret = values.pop(SECRET, None)
    return replace(cluster, request=replace(cluster.request, env=values), secret=secret, sealed=b"")
