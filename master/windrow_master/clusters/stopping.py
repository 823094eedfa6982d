"""Decides which clusters are stopped, and started again. Pure."""

from typing import Final

from windrow_master.clusters.model import Cluster, ClusterPhase
from windrow_master.clusters.states import HOLDING, WAITING
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.sealed import RegistryLogin

RESTS: Final = frozenset({ClusterPhase.STOPPING, ClusterPhase.STOPPED})


def check_stop(cluster: Cluster) -> None:
    """Raises Conflict where stopping means nothing."""
    if cluster.phase in HOLDING or cluster.phase in RESTS:
        return
    way = "Delete it if you do not need it." if cluster.phase in WAITING else "Create another one if you need it."
    raise Conflict(
        f"Only a machine that runs or starts can be stopped, and this one is {cluster.phase}. {way}",
        subject=cluster.cluster_id,
    )


def check_start(cluster: Cluster, login: RegistryLogin | None) -> None:
    """Raises Conflict where there is nothing to start, InvalidInput where what was not kept has to be said again."""
    if cluster.phase is ClusterPhase.STOPPING:
        raise Conflict("The machine is still stopping. Start it when it is Stopped.", subject=cluster.cluster_id)
    if cluster.phase is not ClusterPhase.STOPPED:
        words = f"Only a stopped machine can be started, and this one is {cluster.phase}. Create another."
        raise Conflict(words, subject=cluster.cluster_id)
    check_login(cluster, login, "start it")


def check_login(cluster: Cluster, login: RegistryLogin | None, to_do: str) -> None:
    """Before new hosts pull its image: raises InvalidInput where that took a login and none is given."""
    if cluster.needs_login and login is None:
        words = f"Its image was pulled with a registry's login, which is kept nowhere. Give it again to {to_do}."
        raise InvalidInput(words, subject="registry_login")
