"""Describes a refusal in the API: the reasons, grouped, and the changes with which a request would fit. A plan, a
problem and a job that waits have the same."""

from typing import Annotated, Any

from pydantic import Field

from windrow_master.api.answers import Money, Out, Read
from windrow_master.placement.model import Obstacle
from windrow_proto.units import money_text


class HostNameOut(Out):
    """A host by its id and name."""

    id: Annotated[str, Read(lambda host: host[0])]
    name: Annotated[str, Read(lambda host: host[1])]


class ReasonOut(Out):
    """A reason, and how many hosts it holds for."""

    code: Obstacle
    text: Annotated[str, Field(description="As a line: `12 hosts: no free GPU`")]
    reason: Annotated[str, Field(description="The same without the hosts")]
    count: Annotated[int, Field(description="Number of hosts")]
    is_own: Annotated[bool, Field(description="True for hosts of the account that asks")]
    hosts: Annotated[list[HostNameOut], Field(description="At most three of them, the nearest to a fit first")]


def _changes(way: Any) -> dict[str, Any]:
    found = dict(way.changes)
    if "max_price_per_hour" in found:
        found["max_price_per_hour"] = money_text(found["max_price_per_hour"])
    return found


class WayOut(Out):
    """A change of the request with which it would fit now."""

    text: Annotated[str, Field(description="In a sentence, with the host and the price")]
    changes: Annotated[
        dict[str, Any],
        Field(description="Fields of the request and their new values; null: leave it out"),
        Read(_changes),
    ]
    hosts: Annotated[list[str], Field(description="Names of the hosts on which it would run")]
    price_per_hour: Money


class RefusalOut(Out):
    """The reasons why a request fits nowhere now, and what would fit."""

    detail: Annotated[str, Field(description="In a sentence")]
    is_possible: Annotated[bool, Field(description="False: waiting does not help: no host has what is asked for")]
    reasons: Annotated[list[ReasonOut], Field(description="One's own hosts first; at most four, the last for the rest")]
    ways: Annotated[list[WayOut], Field(description="The smallest change first; at most two")]
