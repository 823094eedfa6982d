"""Resolves host names: where a path or a request names a host, its name does as well as its id while no other host
has it."""

from fastapi import Request

from windrow_master.api.services import Services
from windrow_master.fleet.model import AdminState
from windrow_proto.errors import Conflict

HOST = "host_id"


def resolve(request: Request, services: Services) -> None:
    """Put the id of a host in the place of its name; raise Conflict that says the ids where several have that name.

    A retired host is meant only where no other has the name. What names no host stays, and its route says so.
    """
    wanted = request.path_params.get(HOST)
    if wanted is not None:
        request.path_params[HOST] = host_of(services, wanted)


def host_of(services: Services, wanted: str) -> str:
    """The id of the host of this name; what names none, or is an id, as it is. Raises Conflict as `resolve` does."""
    hosts = [entry.host for entry in services.fleet.view]
    if any(host.host_id == wanted for host in hosts):
        return wanted
    named = [host for host in hosts if host.name == wanted]
    named = [host for host in named if host.admin_state is not AdminState.RETIRED] or named
    if len(named) > 1:
        ids = ", ".join(host.host_id for host in named)
        raise Conflict(f"{len(named)} hosts have the name {wanted}: name one of them by its id: {ids}")
    return named[0].host_id if named else wanted
