"""The values: their enums are the contract's, their digests see what they should and nothing else."""

from dataclasses import fields, replace
from typing import Any

import pytest

from tests.unit.proto import values
from windrow_proto import model
from windrow_proto.ids import GpuUuid, SlotId, WorkloadId
from windrow_proto.model import GpuFacts, Inventory, ObservedWorkload, SlotGrant, WorkloadPhase
from windrow_proto.v1 import host_pb2, link_pb2
from windrow_proto.wire_host import decode_inventory, encode_inventory

ENUMS = [
    (model.FrameClass, link_pb2.FrameClass, "FRAME_CLASS_"),
    (model.Lane, link_pb2.Lane, "LANE_"),
    (model.Kind, link_pb2.Kind, "KIND_"),
    (model.CommandKind, host_pb2.CommandKind, "COMMAND_KIND_"),
    (model.CommandPhase, host_pb2.CommandPhase, "COMMAND_PHASE_"),
    (model.WorkloadPhase, host_pb2.WorkloadPhase, "WORKLOAD_PHASE_"),
    (model.Isolation, host_pb2.Isolation, "ISOLATION_"),
    (model.ChannelPurpose, host_pb2.ChannelPurpose, "CHANNEL_PURPOSE_"),
]


@pytest.mark.parametrize(("ours", "theirs", "prefix"), ENUMS, ids=[e[2] for e in ENUMS])
def test_an_enum_has_the_names_and_numbers_of_its_proto(ours, theirs, prefix):
    assert {prefix + member.name: member.value for member in ours} == dict(theirs.items())


def _workload(**changes: Any) -> ObservedWorkload:
    base = ObservedWorkload(
        WorkloadId("w1"), WorkloadPhase.RUNNING, (SlotGrant(SlotId("a"), 1), SlotGrant(SlotId("b"), 2)), running_ns=5
    )
    return replace(base, **changes)


def test_the_observed_digest_ignores_order_running_time_and_detail():
    other = replace(_workload(), workload_id=WorkloadId("w2"))
    swapped = _workload(slots=tuple(reversed(_workload().slots)), running_ns=99, detail="busy")

    assert model.observed_digest((_workload(), other)) == model.observed_digest((other, swapped))


@pytest.mark.parametrize(
    "changes",
    [
        {"phase": WorkloadPhase.EXITED},
        {"exit_code": 0},
        {"slots": (SlotGrant(SlotId("a"), 9),)},
        {"workload_id": WorkloadId("w9")},
    ],
)
def test_the_observed_digest_changes_with_what_reconciling_compares(changes):
    assert model.observed_digest((_workload(),)) != model.observed_digest((_workload(**changes),))


def test_the_inventory_hash_tells_absent_from_zero():
    gpu = GpuFacts(GpuUuid("GPU-1"), 0, "nvidia", "H100")

    absent = model.inventory_hash(Inventory(gpus=(gpu,)))
    zero = model.inventory_hash(Inventory(gpus=(replace(gpu, memory_bytes=0),)))

    assert absent != zero
    assert absent == model.inventory_hash(Inventory(gpus=(replace(gpu),)))


def test_an_agent_of_the_first_shape_and_a_newer_master_name_one_version():
    """Digests as the first shape gave them: an agent of that shape announces these and knows no field added since."""
    assert model.inventory_hash(values.INVENTORY) == "8aee032a542d0a7bf97d9ae32eaae1ab38eea7eff224bead1c08d5f51a93d752"
    assert model.inventory_hash(Inventory()) == "036514424f64fe96c779fa012bf57b737dcdddea2cee486c00247942a865afe1"


def test_what_a_gpu_tells_beyond_the_first_shape_is_hashed_only_where_it_is_said():
    silent = replace(values.TELLING, gpus=(replace(values.TELLING.gpus[0], more={}),))
    again = decode_inventory(encode_inventory(values.TELLING))

    assert model.inventory_hash(values.TELLING) != model.inventory_hash(silent)
    assert model.inventory_hash(again) == model.inventory_hash(values.TELLING)


@pytest.mark.parametrize(("shape", "first"), [(Inventory, 19), (GpuFacts, 24)])
def test_a_field_added_to_an_inventory_stands_last_and_can_be_left_unsaid(shape: Any, first: int):
    assert all(one.default in (None, "", ()) or one.default_factory is dict for one in fields(shape)[first:])


def test_the_inventory_hash_is_the_same_before_and_after_the_wire_whatever_type_a_figure_has():
    whole = Inventory(benchmarks=(model.Benchmark("cpu.sha256_bytes_per_s", 21_314_890_040, "By/s", 1),))

    assert model.inventory_hash(decode_inventory(encode_inventory(whole))) == model.inventory_hash(whole)
