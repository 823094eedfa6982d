"""The shapes of places elsewhere: of an attempt of a job, and of the tries to find one."""

from typing import Annotated, Any
from zlib import crc32

from pydantic import Field

from windrow_master.api.answers import Money, Out, Read, Time
from windrow_master.api.services import Services
from windrow_master.hybrid.search.model import TryState


class AttemptPlaceOut(Out):
    """The place of an attempt that was bought: a machine, or a run at a service that runs code by itself."""

    backend: str
    service: Annotated[bool, Read("is_service"), Field(description="A run at a service, and no machine of ours")]
    machine: Annotated[str, Field(description="Its type, such as m5.large")]
    region: str
    zone: str | None
    spot: Annotated[bool, Read("is_spot"), Field(description="Its provider may take it back")]
    price_per_hour: Annotated[Money, Field(description="Of its provider, for all of it")]
    currency: str
    purchase_id: str | None
    run_id: str | None
    text: Annotated[str, Field(description="`aws eu-central-1b, spot m5.large (0.041 USD an hour)`")]


class TryOut(Out):
    """A place that was tried for a job or machine because there was no room here."""

    number: int
    place: Annotated[str, Read("place.where"), Field(description="`aws eu-central-1b`")]
    backend: Annotated[str, Read("place.backend")]
    service: Annotated[bool, Read("place.is_service"), Field(description="A run at a service, and no machine of ours")]
    machine: Annotated[str, Read("place.machine"), Field(description="Its type, such as m5.large")]
    region: Annotated[str, Read("place.region")]
    zone: Annotated[str | None, Read("place.zone")]
    spot: Annotated[bool, Read("place.is_spot")]
    price_per_hour: Annotated[Money, Read("place.price_per_hour")]
    currency: Annotated[str, Read("place.currency")]
    state: Annotated[
        TryState,
        Field(
            description="asking, booting, ready (it has joined: the work starts there next), used, failed, or dropped: "
            "the work started elsewhere, or is over"
        ),
    ]
    said: Annotated[str | None, Field(description="Why it failed or was dropped")]
    at: Annotated[Time, Read("at_ns")]
    purchase_id: Annotated[str | None, Read("place.purchase_id")]
    run_id: Annotated[str | None, Read("place.run_id")]


async def tries_of(services: Services, entry_id: str) -> list[dict[str, Any]] | None:
    """The last tries for a job or machine, the oldest first; None: it may not run elsewhere."""
    found = await services.searches.tries(entry_id)
    return None if found is None else [TryOut.of(one) for one in found]


def tries_tag(tries: list[dict[str, Any]] | None) -> str:
    """The part of an ETag that stands for them."""
    return "" if not tries else format(crc32(repr([(one["number"], one["state"]) for one in tries]).encode()), "08x")
