"""What the HTTP API answers about Accesses. Models as in out.py."""

from typing import Annotated

from pydantic import Field

from windrow_master.accesses.failover_test.model import Phase
from windrow_master.accesses.model import AccessState
from windrow_master.api.out import Out, Time


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
    stop_name: Annotated[
        str | None, Field(description="What `windrow up` calls it: it may be stopped as a test; null elsewhere")
    ]
    stopped_at: Annotated[Time | None, Field(description="Of the latest test that stopped it: `/stop` tells of that")]


class AgentOut(Out):
    """One host's link, as a map of the Accesses shows it."""

    id: str
    name: str
    simulated: bool
    link_state: str
    access_id: Annotated[str | None, Field(description="Where it was heard last; null before the first time")]
    rtt_ms: Annotated[float | None, Field(description="Its round trip to that Access; null if it is not known")]
    version: Annotated[int, Field(description="Grows with each change of the host, as in `/hosts`")]


class CountedOut(Out):
    """What became of the samples of a test's agents, by the log on the disk."""

    acked_samples: Annotated[int, Field(description="Acknowledged and in the log, from a minute before the kill on")]
    acked_batches: int
    lost_samples: Annotated[int, Field(description="Acknowledged and not in the log")]
    lost_batches: int
    lost_evidence: Annotated[int, Field(description="Records of evidence that agents hold for acknowledged, likewise")]
    given_up_batches: Annotated[int, Field(description="Never acknowledged, and told by their agent to be gone")]
    longest_gap_s: Annotated[float | None, Field(description="Between two batches of one agent, ended after the kill")]
    usual_gap_s: Annotated[float | None, Field(description="The median before the kill")]


class StopOut(Out):
    """A test that killed an Access."""

    access_id: str
    name: str
    region: str | None
    asked_at: Time
    asked_by: str
    reason: str | None
    phase: Annotated[Phase, Field(description="Unfinished: not every agent was back and had sent anew in two minutes")]
    finished_at: Time | None
    agents: Annotated[int, Field(description="Connected through it when it was killed")]
    back: Annotated[int, Field(description="Of those, how many have connected again")]
    elsewhere: Annotated[int, Field(description="Of those, how many are at another Access")]
    away_s: Annotated[float, Field(description="The longest that one of them was, or is, without a connection")]
    problem: Annotated[str | None, Field(description="Why nothing could be counted")]
    counted: Annotated[CountedOut | None, Field(description="Null while it runs")]
    how: Annotated[str, Field(description="How it is counted, in words")]
