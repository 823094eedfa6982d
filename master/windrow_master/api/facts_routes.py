"""Route of a host's facts: every field of the table with the value that the host reported, or null."""

from typing import Annotated, Any

from pydantic import Field

from windrow_master.api.answers import Out
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Serving
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_proto.host_fields import HOST_FIELDS, HostGroup, value
from windrow_proto.ids import HostId
from windrow_proto.model import Inventory

route = Routes("host-facts")


class HostFieldOut(Out):
    """One field of a host."""

    name: Annotated[str, Field(description="Stable")]
    label: str
    value: Annotated[float | bool | str | None, Field(description="In its unit; null where the host did not say")]
    unit: Annotated[str, Field(description="UCUM; `bool`, or empty for words")]
    read: Annotated[str, Field(description="Where on the host it is read")]
    otel: Annotated[str | None, Field(description="Its name in OpenTelemetry's conventions for hosts")]


class HostGroupOut(Out):
    """Fields about one thing."""

    name: str
    fields: list[HostFieldOut]


class HostFactsOut(Out):
    """A host by its own words."""

    host_id: str
    groups: list[HostGroupOut]


@route.get("/hosts/{host_id}/facts", may=Permission.FLEET_READ, reach=Reach.ALL, answer=HostFactsOut)
async def facts(services: Serving, host_id: str) -> Any:
    """A host's own claims about its machine, processors, disk, network and containers; none of them is proved."""
    host = services.fleet.entry(HostId(host_id)).host
    more = (host.inventory or Inventory()).more
    return {
        "host_id": host.host_id,
        "groups": [
            {
                "name": group,
                "fields": [HostFieldOut.of(one, value=value(one, more)) for one in HOST_FIELDS if one.group is group],
            }
            for group in HostGroup
        ],
    }
