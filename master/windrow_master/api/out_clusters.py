"""What the HTTP API answers about clusters: themselves, where one would run, and why there. Models as in out.py."""

from typing import Annotated

from pydantic import Field

from windrow_master.api.out import VALUES, Amount, Isolated, Money, OperationOut, Out, Time


class StepOut(Out):
    """One step of a cluster's way."""

    at: Time
    name: str
    progress: Annotated[float | None, Field(description="From 0 to 1")]
    detail: str | None
    member: Annotated[str | None, Field(description="Whose step it is, of a cluster of several members")]


class ResultsOut(Out):
    """What is kept of work that has ended by itself."""

    kept_at: Time
    log_bytes: Annotated[int | None, Field(description="Null: its log could not be had")]
    files_bytes: Annotated[
        int | None, Field(description="Of a tar of the files that it changed; null: they could not be had")
    ]
    problem: Annotated[str | None, Field(description="What is missing of it, by name, and why")]


class WorkloadOut(Out):
    """What runs of a cluster on one host."""

    id: str
    host_id: str
    host_name: str
    phase: str
    is_lost: bool
    detail: str | None
    runtime: str
    image: str | None
    slots: list[str]
    isolation: Isolated
    exit_code: int | None
    ports: dict[str, int]
    running_s: Annotated[float, Field(description="Signed by the host, in seconds")]
    rank: Annotated[int, Field(description="Which member it is; 0 where there is only one")]
    address: Annotated[str | None, Field(description="Where the other members reach it; null where there are none")]
    is_member: Annotated[bool, Field(description="False once another has its rank, or is to have it")]
    results: Annotated[
        ResultsOut | None, Field(description="Null until its command has ended by itself and they are brought in")
    ]


class KeptRequestOut(Out):
    """What was asked for; what was not said is null."""

    name: str
    kind: str
    gpus: int
    gpu_model: str | None
    gpu_memory_bytes: int | None
    cpus: int
    memory_bytes: int | None
    image: str | None
    argv: list[str]
    env: Annotated[dict[str, str | None], Field(description=VALUES)]
    ports: list[int]
    await_files: bool
    host_id: str | None
    tier: str | None
    runtime: str | None
    simulated: bool
    slice: str | None
    max_price_per_hour: Amount
    budget: Amount
    max_duration_seconds: float | None
    idle_seconds: float | None
    client_lease_s: int | None
    hosts: int
    restart_members: bool
    ssh_keys: list[str]
    notebook: bool
    volumes: list[str]


class TrafficOut(Out):
    """What came to a service over HTTPS and back, without what is under way; or what went between the members of a
    private network, as one of each two counts it, and how often such two were joined. Written every ten seconds."""

    connections: int
    bytes_in: int
    bytes_out: int


class NetworkOut(Out):
    """How members on several hosts meet."""

    mode: Annotated[str, Field(description="direct, or tunnels: in a private network, through Accesses")]
    reason: str
    cords: Annotated[int, Field(description="Of a private network: the pairs of members that are to be joined")]
    cords_up: Annotated[int, Field(description="Those of them that are")]
    problem: Annotated[str | None, Field(description="Why one of them is not")]


class ClusterOut(Out):
    """A cluster with its workloads."""

    id: str
    name: str
    forward_host: Annotated[str, Field(description="The name of its forwarded ports on a renter's machine")]
    account_id: str
    kind: str
    phase: str
    reason: str | None
    steps: list[StepOut]
    workloads: list[WorkloadOut]
    request: KeptRequestOut
    urls: Annotated[
        dict[str, str],
        Field(description="Of a service, by port: where anybody who knows the address reaches it. Tell it as you like"),
    ]
    traffic: TrafficOut
    network: Annotated[NetworkOut | None, Field(description="Null where there are not several hosts")]
    tier: str | None
    price_per_hour: Amount
    cost_so_far: Annotated[Amount, Field(description="Of all its runs")]
    started_at: Annotated[Time | None, Field(description="Of its present run, from its start to its stop")]
    ended_at: Time | None
    ends_at: Annotated[Time | None, Field(description="When its duration or its budget ends it; null: neither does")]
    client_lease_ends_at: Annotated[
        Time | None, Field(description="When it ends unless its client renews; null: it goes on without a client")
    ]
    created_at: Time
    rental_id: Annotated[str | None, Field(description="Of its present run, or of the last one")]
    first_port: Annotated[int | None, Field(description="Of its block of ports on its hosts; null where it has none")]
    restarts: Annotated[int, Field(description="How often members were replaced")]
    needs_login: Annotated[bool, Field(description="Whether to start it again takes its image's registry login")]
    version: int


class ClusterAcceptedOut(Out):
    """A cluster, and the operation that makes or ends it."""

    operation: OperationOut
    cluster: ClusterOut


class PlacedOut(Out):
    """Where a request runs or would run, and at what price."""

    host_id: str
    host_name: str
    slots: list[str]
    tier: str
    runtime: str
    image: str | None
    price_per_hour: Money
    note: Annotated[str, Field(description="What there is to know of this way there; empty: nothing")]


class RefusalOut(Out):
    """Why a host does not take a request."""

    host_id: str
    host_name: str
    reason: str


class PlanOut(Out):
    """What creating a cluster would mean now."""

    fits: bool
    fits_soon: Annotated[bool, Field(description="It does not fit now, but will with a card that is back in a moment")]
    placement: list[PlacedOut]
    tested: Annotated[list[str], Field(description="Ids of those hosts that the market tests now; that ends for it")]
    price_per_hour: Amount
    hold: Annotated[str | None, Field(description="What would be set aside first, a decimal amount of money")]
    balance: Money
    refusals: Annotated[list[RefusalOut], Field(description="Only where nothing fits")]


class WeightsOut(Out):
    """How much each term of a score counts; terms are from 0 to 1000."""

    cost: int
    packing: int
    trust: int
    home: int
    grade: int


class ChosenOut(PlacedOut):
    """The best host."""

    score: int | None
    terms: dict[str, int]


class LoserOut(Out):
    """A host that was not chosen."""

    host: str
    host_id: str
    reason: str
    score: Annotated[int | None, Field(description="Null where it does not fit")]
    terms: dict[str, int]


class ExplanationOut(Out):
    """Why a cluster runs where it runs, from the record of that decision."""

    decision: Annotated[str, Field(description="The same in a sentence")]
    weights: WeightsOut
    chosen: ChosenOut | None
    others_chosen: Annotated[list[PlacedOut], Field(description="Beside the best one, of several hosts")]
    losers: Annotated[list[LoserOut], Field(description="The best of those that were looked at, best first")]
    others: Annotated[dict[str, int], Field(description="How many more were looked at, by what was said of them")]


class TunnelAccessOut(Out):
    """An Access by which tunnels may go."""

    id: str
    address: Annotated[str, Field(description="host:port; the time that connecting takes is what to measure")]


class TunnelOut(Out):
    """Where a renter comes for a tunnel, and what is shown there."""

    id: str
    grant: Annotated[str, Field(description="Shown once, as bearer token, to the Access")]
    address: Annotated[str, Field(description="host:port of the Access")]
    server_name: Annotated[str, Field(description="What its certificate has to name")]
    ca_pem: Annotated[str, Field(description="The authority of that certificate")]
    protocol: Annotated[str, Field(description="What the connection is upgraded to")]
    host_pem: Annotated[
        str, Field(description="The host's certificate for this tunnel, and the only one to trust then")
    ]
    host_server_name: Annotated[str, Field(description="What that certificate names")]
    secret: Annotated[str, Field(description="In hexadecimal; its bytes are what the host is told first, inside TLS")]
    expires_at: Annotated[Time, Field(description="To connect by; the tunnel itself has no end of its own")]
    access_id: Annotated[str | None, Field(description="Whose `address` it is; null where the Master does not know")]
    accesses: Annotated[
        list[TunnelAccessOut], Field(description="Those that may be measured for the next one; empty without a choice")
    ]


class BoxOut(Out):
    """How a box is entered by who rents it; each is null where it is not, also for what is no box."""

    ssh_port: Annotated[int | None, Field(description="Where its SSH server listens, for the keys of the request")]
    notebook_port: Annotated[int | None, Field(description="Where Jupyter listens")]
    notebook_token: Annotated[str | None, Field(description="With which Jupyter is opened: ?token= in its address")]
