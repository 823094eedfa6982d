"""What the HTTP API answers about Accesses. Models as in out.py."""

from typing import Annotated, Final

from pydantic import Field

from windrow_master.accesses.model import AccessState
from windrow_master.api.out import Out, Page, Time, described


class AccessOut(Out):
    """One Access, all of its workers together."""

    id: str
    region: Annotated[str | None, Field(description="Null where nobody knows: gone before this Master started")]
    address: Annotated[str | None, Field(description="What agents dial")]
    version: str | None
    state: Annotated[AccessState, Field(description="Draining: it takes nobody new, and its agents are sent elsewhere")]
    workers: int
    agents: Annotated[int, Field(description="Connected through it now")]
    load_permille: Annotated[int, Field(description="Of the fullest worker, of what it may carry")]
    rtt_ms: Annotated[float | None, Field(description="The median of what its agents measured; null if nobody did")]
    since: Annotated[Time | None, Field(description="Attached since, or gone since")]
    drained_at: Annotated[Time | None, Field(description="Null unless people took it out of service")]
    drained_by: str | None
    drain_reason: str | None


class AgentOut(Out):
    """One host's link, as a map of the Accesses shows it."""

    id: str
    name: str
    simulated: bool
    link_state: str
    access_id: Annotated[str | None, Field(description="Where it was heard last; null before the first time")]
    rtt_ms: Annotated[float | None, Field(description="Its round trip to that Access; null if it is not known")]
    version: Annotated[int, Field(description="Grows with each change of the host, as in `/hosts`")]


ACCESS: Final = described(AccessOut)
ACCESSES: Final = described(Page[AccessOut])
AGENTS: Final = described(Page[AgentOut])
