"""Checks the limits of a request for a cluster, and derives from it the digest, the request to placement and the
host's order. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from windrow_master.clusters.kinds import box
from windrow_master.clusters.model import OVER_HOSTS, ClusterKind, ClusterRequest
from windrow_master.placement.model import Request, Runtime
from windrow_master.secrets.model import variables_of
from windrow_master.spec import Resources, check, check_elsewhere, check_labels, fields_of, require
from windrow_proto import image_names
from windrow_proto.errors import InvalidInput
from windrow_proto.ids import NO_ID, AccountId, ClusterId, WorkloadId, resembles_id
from windrow_proto.model import SlotGrant, WorkloadSpec
from windrow_proto.units import GIB, MIB
from windrow_proto.volumes import check_mounts

REQUEST_CHARS_MAX: Final = 64 * 1024
"""Of all that is asked for, its keys and volumes included: it is kept, listed and sent to each host."""
NAME_MAX: Final = 64
LOG_CAP_BYTES: Final = 128 * MIB
"""Of a run's log on its host: whoever follows it, as into a file, has all of it up to there."""
LOG_KEPT_BYTES: Final = 10 * MIB
"""Of that for those who read it at once or later."""
LOG_CUT: Final = b"\n[windrow: the log was cut here; its host had more, which was not kept]\n"
FILES_CAP_BYTES: Final = 1 * GIB

_THINGS: Final = {ClusterKind.BOX: "machine", ClusterKind.GANG: "cluster"}
"""How new names begin, where not with the kind."""
_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
"""255 characters with a digest, as many as the API takes."""
_NAME: Final = re.compile(rf"(?=.{{1,{NAME_MAX}}}$)[A-Za-z0-9._:@/+()-]+( [A-Za-z0-9._:@/+()-]+)*", re.ASCII)
"""Nothing that a page, a terminal or a query would have to defend against."""
_NAME_RULE: Final = (
    f"1 to {NAME_MAX} of A-Z a-z 0-9 . _ : @ + ( ) -, maybe with single blanks between them; not only dots, not "
    f"beginning with - or @, and {NO_ID}"
)


def checked(request: ClusterRequest, cluster_id: ClusterId) -> ClusterRequest:
    """The request within its limits and with a name fit for every page; raises InvalidInput naming the field."""
    request = replace(request, ssh_keys=tuple(key.strip() for key in request.ssh_keys))
    check(request)
    for field in ("gpu_memory_bytes", "gpu_model", "slice"):
        require(field, request.gpus > 0 or getattr(request, field) is None, "left out unless gpus is above 0")
    check_labels(request.labels)
    require("env", all(_ENV_NAME.fullmatch(name) for name in request.env), "named with letters, digits and _")
    is_small = size(request) <= REQUEST_CHARS_MAX
    require("argv", is_small, f"at most {REQUEST_CHARS_MAX} characters together with the rest of the request")
    is_image = request.image is None or image_names.is_name(request.image)
    require("image", is_image, "an image's name, maybe with @sha256:...")
    over_hosts = ", ".join(sorted(kind.value for kind in OVER_HOSTS))
    is_over_hosts = request.kind in OVER_HOSTS
    require("hosts", is_over_hosts or request.hosts == 1, f"1, except for a cluster of the kinds {over_hosts}")
    require("host_id", request.host_id is None or request.hosts == 1, "left out with more than one host")
    is_gang = request.kind is ClusterKind.GANG
    require("restart_members", is_gang or not request.restart_members, "left out unless the kind is gang")
    require("argv", not is_gang or bool(request.argv), "given for kind gang: every host runs it")
    check_elsewhere(request)
    is_alone = request.backend is None or (request.wait_ns is not None and request.hosts == 1)
    require("backend", is_alone, "left out without wait_seconds, and with more than one host")
    box.check(request)
    check_volumes(request)
    check_secrets(request)
    ends_itself = bool(request.argv) and request.kind is not ClusterKind.SERVICE
    is_endless = request.idle_ns is None or not ends_itself
    require("idle_seconds", is_endless, "left out with a command: the machine ends with it")
    is_image = request.image is not None or not request.entrypoint
    require("entrypoint", is_image, "left out where no image is named: it takes the place of the image's")
    is_process = request.runtime == Runtime.PROCESS
    require("runtime", not (is_process and request.image is not None), "docker where an image is named")
    thing = _THINGS.get(request.kind, request.kind.value)
    return replace(request, name=checked_name(request.name) or f"{thing}-{cluster_id[-6:]}")


def check_volumes(request: ClusterRequest) -> None:
    """Raise InvalidInput where volumes are asked for that such a cluster cannot have."""
    check_mounts(request.volumes)
    if not request.volumes:
        return
    if request.simulated or request.runtime == Runtime.SIMULATED:
        raise InvalidInput("A simulated host has no disk, and so no volumes.", subject="volumes")
    if request.hosts > 1 and any(not one.read_only for one in request.volumes):
        said = "One host writes a volume. A cluster over several hosts takes it read-only: NAME:/path:ro"
        raise InvalidInput(f"{said}, and writes it from a machine or job of its own.", subject="volumes")


def check_secrets(request: ClusterRequest) -> None:
    """Raise InvalidInput where a variable would have two values, or a registry's login no image."""
    variables = [variable for variable, _ in variables_of(request)]
    twice = sorted({one for one in variables if one in request.env or variables.count(one) > 1})
    require("secrets", not twice, f"the only value of each variable; there is another for {', '.join(twice)}")
    has_image = request.registry_secret is None or request.image is not None
    require("registry_secret", has_image, "left out where no image is named")


def checked_name(name: str) -> str:
    """The name as it was given; empty: none was. Raises InvalidInput with the rule: nobody finds what was renamed."""
    require("name", not name or _NAME.fullmatch(name) is not None, _NAME_RULE)
    return name


def check_new_name(name: str) -> None:
    """Raise InvalidInput with the rule where a new cluster or job may not have this name. Older ones keep theirs."""
    is_odd = "/" in name or name.startswith(("-", "@")) or not name.strip(".") or resembles_id(name)
    require("name", not checked_name(name) or not is_odd, _NAME_RULE)


def digest(request: ClusterRequest) -> bytes:
    """Return the digest that an Idempotency-Key is bound to."""
    return sha256(_SORTED.encode(request).encode()).digest()


def size(request: ClusterRequest) -> int:
    """Return how many characters all of it takes."""
    return len(json.dumps(request, default=_by_name, ensure_ascii=False))


def _by_name(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


_SORTED: Final = json.JSONEncoder(default=_by_name, sort_keys=True)


def placement_request(request: ClusterRequest, account_id: AccountId, tie_seed: str, is_proof: bool = False) -> Request:
    """Return the request as placement looks at it."""
    resources = {one.attribute: getattr(request, one.attribute) for one in fields_of(Resources)}
    return Request(
        **resources | {"runtime": None if request.runtime is None else Runtime(request.runtime)},
        account_id=account_id,
        tie_seed=tie_seed,
        wants_simulated=request.simulated or request.runtime == Runtime.SIMULATED,
        is_proof=is_proof,
        hosts=request.hosts,
    )


@dataclass(frozen=True, slots=True)
class Membership:
    """The settings of a workload beyond its request: as a member of others (kinds/engines.py), or as a box
    (kinds/box.py).

    address: None where nobody comes there, as on a simulated host. peers: the others
    in its private network, if it is in one. is_waiting: whether it starts with the others only.
    """

    rank: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    address: str | None = None
    listens: tuple[int, ...] = ()
    peers: tuple[str, ...] = ()
    is_waiting: bool = True


def workload_spec(
    request: ClusterRequest,
    *,
    workload_id: WorkloadId,
    cluster_id: ClusterId,
    slots: tuple[SlotGrant, ...],
    runtime: str,
    image: str,
    lease_ns: int,
    paid_ns: int,
    member: Membership | None = None,
    may_use_local_image: bool = False,
) -> WorkloadSpec:
    """Return the workload that the host is told to start. Processors are limited to what was asked and paid for;
    beside GPUs if asked. Work starts in /workspace where its files are, or where the command is the Master's own."""
    is_limited = request.gpus == 0 or request.cpus > 1
    argv = request.argv if member is None else member.argv
    return WorkloadSpec(
        workload_id=workload_id,
        cluster_id=cluster_id,
        slots=slots,
        runtime=runtime,
        image=image,
        argv=argv,
        env=dict(request.env if member is None else member.env),
        cpu_milli=1000 * request.cpus if is_limited else 0,
        memory_bytes=request.memory_bytes or 0,
        ports=request.ports,
        await_files=request.await_files,
        lease_ns=lease_ns,
        paid_ns=paid_ns,
        log_cap_bytes=LOG_CAP_BYTES,
        files_cap_bytes=FILES_CAP_BYTES,
        await_members=member is not None and member.is_waiting,
        address="" if member is None else member.address or "",
        listens=() if member is None or member.address is None else member.listens,
        peers=() if member is None or member.address is None else member.peers,
        volumes=request.volumes,
        may_use_local_image=may_use_local_image,
        entrypoint=request.entrypoint,
        starts_in_workspace=request.await_files or argv != request.argv,
    )
