"""Routes of the registry of compute resources, at the paths and with the bodies that clients of Model Studio know.

docs/resources.md has the document's own requests and the table of odd input, which tests/mission/test_registry.py
sends.
"""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from windrow_master.api.answers import Out, Read, Written
from windrow_master.api.auth import Reach, Repeat
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.route import Routes
from windrow_master.hybrid.model import (
    FRAMEWORKS_MAX,
    JOBS_MAX,
    NUMBER_MAX,
    RESOURCE_ID_FORM,
    RESOURCE_ID_WORDS,
    TEXT_MAX,
    WORD_MAX,
    Resource,
    ResourceStatus,
    ResourceType,
    check_same,
    declared_of,
)
from windrow_master.identity.decide import Permission
from windrow_proto.errors import InvalidInput
from windrow_proto.units import KIB, SECOND

W = TypeVar("W", ResourceStatus, ResourceType)

route = Routes("compute resources", "/api/model-studio")

PATH: Final = "/compute-resources"
BODY_MAX: Final = 64 * KIB

Id = Annotated[str, Path(description="The resource's `resource_id`")]
Text = Annotated[str, Field(min_length=1, max_length=TEXT_MAX)]
Figure = Annotated[float, Field(ge=0, le=NUMBER_MAX)]
Capabilities = Annotated[
    dict[str, Any],
    Field(
        description="`gpu`, `gpu_count`, `gpu_type`, `cpu_cores`, `memory_gb`, `storage_gb`, `storage_tb`, and others "
        "by name: a flag, a number of 0 or more, or a text",
        examples=[{"gpu": True, "gpu_count": 4, "gpu_type": "NVIDIA V100", "cpu_cores": 64, "memory_gb": 512}],
    ),
]
Frameworks = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=WORD_MAX)]],
    Field(max_length=FRAMEWORKS_MAX, description="Empty: not said, the image decides"),
]
Type = Literal["on-premise", "cloud", "edge"]
Status = Literal["available", "busy", "maintenance", "unavailable"]
Auth = Literal["ssh_key", "api_token", "iam_role"]


class Fields(BaseModel):
    """The fields that people declare, each taken only in its own type; null is the same as left out."""

    model_config = ConfigDict(extra="forbid", strict=True)

    resource_type: Type | None = None
    provider: Annotated[Text | None, Field(description="Required for a cloud: AWS, Azure, GCP or another")] = None
    location: Annotated[Text | None, Field(description="Data centre or place")] = None
    region: Annotated[Text | None, Field(description="Of a cloud, such as us-east-1")] = None
    capabilities: Capabilities | None = None
    supported_frameworks: Frameworks | None = None
    status: Annotated[Status | None, Field(description="Default: available")] = None
    max_parallel_jobs: Annotated[int | None, Field(ge=1, le=JOBS_MAX, description="Default: 1")] = None
    network_bandwidth_gbps: Annotated[Figure | None, Field(description="In Gbit/s")] = None
    cost_per_hour_usd: Annotated[
        Figure | None, Field(description="Default: 0.0; of a cloud null, then its price in the catalogue counts")
    ] = None
    auth_method: Auth | None = None
    latency_ms: Annotated[int | None, Field(ge=0, le=int(NUMBER_MAX), description="To the Master")] = None


class ResourceBody(Fields):
    """A resource to register."""

    resource_id: Annotated[str, Field(pattern=RESOURCE_ID_FORM, description=RESOURCE_ID_WORDS)]
    resource_type: Type
    capabilities: Capabilities


class ResourceChangeBody(Fields):
    """A change: the fields that are given replace what is kept, `capabilities` as a whole; null puts an optional one
    back to its default. The last four are not changed, and are taken if they are as they are."""

    id: int | None = None
    resource_id: str | None = None
    created_at: str | None = None
    updated_at: str | None = None


READ_ONLY: Final = frozenset(ResourceChangeBody.model_fields) - frozenset(Fields.model_fields)


def _whole_seconds(wall_ns: int) -> str:
    """RFC 3339 in UTC without a fraction, as the document of these routes writes times."""
    return datetime.fromtimestamp(wall_ns // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Time = Annotated[str, Field(description="RFC 3339 in UTC, in whole seconds"), Written(_whole_seconds, "_ns")]


class ResourceOut(Out):
    """A registered resource."""

    id: Annotated[int, Read("number"), Field(description="Counted from 1")]
    resource_id: str
    resource_type: Annotated[Type, Read("declared.resource_type")]
    provider: Annotated[str | None, Read("declared.provider")]
    location: Annotated[str | None, Read("declared.location")]
    region: Annotated[str | None, Read("declared.region")]
    capabilities: Annotated[dict[str, Any], Read("declared.capabilities")]
    supported_frameworks: Annotated[list[str], Read("declared.supported_frameworks")]
    status: Annotated[Status, Field(description="The sterner of what was declared and what its host shows")]
    max_parallel_jobs: Annotated[int, Read("declared.max_parallel_jobs")]
    network_bandwidth_gbps: Annotated[float | None, Read("declared.network_bandwidth_gbps")]
    cost_per_hour_usd: float | None
    auth_method: Annotated[Auth | None, Read("declared.auth_method")]
    latency_ms: Annotated[int | None, Read("declared.latency_ms")]
    created_at: Time
    updated_at: Annotated[Time | None, Field(description="Null until the first change")]


@route.post(
    PATH,
    may=Permission.RESOURCES,
    repeat=Repeat.REPEATABLE,
    body_max=BODY_MAX,
    is_local=True,
    status_code=201,
    answer=ResourceOut,
)
async def register_resource(services: Serving, principal: Asking, body: ResourceBody) -> Any:
    """Register a resource. 400 where its `resource_id` is taken."""
    given = body.model_dump(exclude={"resource_id"})
    return ResourceOut.of(await services.registry.register(principal, body.resource_id, declared_of(given)))


@route.get(PATH, may=Permission.FLEET_READ, is_local=True, answer=list[ResourceOut])
async def list_resources(
    services: Serving,
    status_filter: Annotated[str, Query(description="A status; empty: any")] = "",
    resource_type: Annotated[str, Query(description="A type; empty: any")] = "",
    provider: Annotated[str, Query(max_length=TEXT_MAX, description="In any case; empty: any")] = "",
) -> Any:
    """All resources that every filter lets through, by `id`."""
    status = _word("status_filter", ResourceStatus, status_filter)
    kind = _word("resource_type", ResourceType, resource_type)
    return [ResourceOut.of(one) for one in await services.registry.list(status, kind, provider or None)]


@route.get(f"{PATH}/{{resource_id}}", may=Permission.FLEET_READ, reach=Reach.ALL, is_local=True, answer=ResourceOut)
async def resource(services: Serving, resource_id: Id) -> Any:
    """One resource."""
    return ResourceOut.of(await services.registry.get(resource_id))


@route.put(
    f"{PATH}/{{resource_id}}",
    may=Permission.RESOURCES,
    reach=Reach.ALL,
    body_max=BODY_MAX,
    is_local=True,
    answer=ResourceOut,
)
async def change_resource(services: Serving, principal: Asking, resource_id: Id, body: ResourceChangeBody) -> Any:
    """Change a resource: the fields that are given, and no other."""
    given = body.model_dump(exclude_unset=True)
    read_only = {name: given.pop(name) for name in READ_ONLY & given.keys()}

    def check(known: Resource) -> None:
        check_same(read_only, ResourceOut.of(known))

    return ResourceOut.of(await services.registry.change(principal, resource_id, given, check))


@route.delete(f"{PATH}/{{resource_id}}", may=Permission.RESOURCES, reach=Reach.ALL, is_local=True, status_code=204)
async def remove_resource(services: Serving, principal: Asking, resource_id: Id) -> Response:
    """Remove a resource from the registry."""
    await services.registry.remove(principal, resource_id)
    return Response(status_code=204)


def _word(name: str, words: type[W], text: str) -> W | None:
    try:
        return words(text) if text else None
    except ValueError:
        raise InvalidInput(f"{name}: It is one of {', '.join(words)}.", subject=name) from None
