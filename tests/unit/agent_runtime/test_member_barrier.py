"""A host refuses a member whose address or ports it does not have."""

import socket
from dataclasses import replace

from windrow_agent.workloads.member_barrier import member_refusal
from windrow_proto.errors import Conflict, InvalidInput
from windrow_proto.ids import ClusterId, SlotId, WorkloadId
from windrow_proto.model import SlotGrant, WorkloadSpec

SPEC = WorkloadSpec(WorkloadId("work_a"), ClusterId("cl"), (SlotGrant(SlotId("s"), 3),), "process", address="127.0.0.1")


def test_an_address_of_another_host_is_refused_and_none_is_nobodys_business():
    refused = member_refusal(replace(SPEC, address="192.0.2.1"))
    assert isinstance(refused, InvalidInput) and "192.0.2.1" in refused.detail
    assert member_refusal(replace(SPEC, address="")) is None


def test_a_port_that_somebody_listens_on_is_refused_and_free_again_afterwards():
    with socket.create_server(("127.0.0.1", 0)) as server:
        spec = replace(SPEC, listens=(server.getsockname()[1],))
        refused = member_refusal(spec)
    assert isinstance(refused, Conflict) and "is in use" in refused.detail
    assert member_refusal(spec) is None
