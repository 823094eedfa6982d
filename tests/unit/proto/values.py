"""One full example of every value that crosses the wire, and how each becomes bytes."""

from windrow_proto import challenge, model, wire_challenge, wire_command, wire_host, wire_link
from windrow_proto import messages as m
from windrow_proto.bandwidth import BandwidthClaim, BandwidthResult
from windrow_proto.canary import Canary, CanaryReply, Heard, Sent
from windrow_proto.ids import BootId, ClusterId, CommandId, GpuUuid, HostId, SlotId, WorkloadId
from windrow_proto.model import Lane

BOOT = BootId(bytes(range(16)))
HOST = HostId("host_" + "0" * 32)
SLOTS = (model.SlotGrant(SlotId("GPU-1"), 7, GpuUuid("GPU-1")), model.SlotGrant(SlotId(f"{HOST}/cpu/0"), 9))
MARKS = (m.LaneMarks(Lane.EVIDENCE, BOOT, ((1, 4), (6, 6))), m.LaneMarks(Lane.TELEMETRY, BOOT, ()))
SETTINGS = m.Settings(5_000_000_000, 1_000_000_000, 5_000_000_000, 64, 32, 262_144)
WORKLOAD, CLUSTER, COMMAND = WorkloadId("wl_1"), ClusterId("cl_1"), CommandId("cmd_1")

GPU = model.GpuFacts(
    GpuUuid("GPU-1"), 0, "nvidia", "NVIDIA H100 80GB HBM3", "00000000:1B:00.0", 0x233010DE, 1, 80 << 30, 9, 0,
    "s", None, 350_000, 700_000, 1980, 2619, 5, 16, 16896, 5120, True, False, -1, 0,
)  # fmt: skip
INVENTORY = model.Inventory(
    hostname="näme",
    cpu_count=4,
    memory_bytes=1 << 40,
    simulated=True,
    gpus=(GPU, model.GpuFacts(GpuUuid("GPU-2"), 1, "nvidia", "x")),
    runtimes=("docker", "process"),
    conditions=("gpu.no_driver",),
    runtime_versions={"docker": "27.0"},
    benchmarks=(model.Benchmark("cpu.int_ops", 1.25, "1/s", 5, ""),),
)
TELLING = model.Inventory(
    gpus=(model.GpuFacts(GpuUuid("GPU-1"), 0, "nvidia", "x", more={"bar1_bytes": 128 << 30, "left": -1, "brand": "ü"}),)
)
SLICE = (model.SlotGrant(SlotId("MIG-1"), 3, GpuUuid("MIG-1"), model.Isolation.MIG),)
CUT = model.Inventory(
    gpus=(
        model.GpuFacts(
            *(GpuUuid("GPU-1"), 0, "nvidia", "x"),
            slices=(model.GpuSlice(GpuUuid("MIG-1"), "1g.10gb", model.Isolation.MIG, 9984 << 20, 1),),
            layout=("1g.10gb", "1g.10gb"),
        ),
    )
)
SPEC = model.WorkloadSpec(
    WORKLOAD, CLUSTER, SLOTS, "docker", "img:1", ("sh", "-c", "a\nb"), {"K": "v=\n1"}, 2000, 1 << 30, (22, 8080), True,
    30 * 60 * 10**9, 15 * 60 * 10**9, 10 << 20, 1 << 30, True, "10.0.0.5", (20_000, 20_001),
    ("10.8.0.2",), b"sealed", may_use_local_image=True, entrypoint="", starts_in_workspace=True,
)  # fmt: skip
CLAIM = BandwidthClaim("n", "acc_1", HOST, 10**9, 2 * 10**9, 5, 6, 7, 8)

CHALLENGE = challenge.Challenge(bytes(32), bytes(range(32)), GpuUuid("GPU-1"), 128, 2)
OPENING = challenge.Opening(bytes(range(256)), (bytes(32), bytes(range(32))))

ROUND_TRIPS = [
    (wire_challenge.encode_challenge, wire_challenge.decode_challenge, CHALLENGE),
    (wire_challenge.encode_commitment, wire_challenge.decode_commitment,
     challenge.Commitment(CHALLENGE.id, GpuUuid("GPU-1"), (bytes(32), bytes(range(32))))),
    (wire_challenge.encode_selection, wire_challenge.decode_selection,
     challenge.Selection(CHALLENGE.id, (challenge.Place(1, 5, 127), challenge.Place(0, 0, 0)))),
    (wire_challenge.encode_answer, wire_challenge.decode_answer, challenge.Answer(CHALLENGE.id, (OPENING, OPENING))),
    (wire_host.encode_inventory, wire_host.decode_inventory, INVENTORY),
    (wire_host.encode_inventory, wire_host.decode_inventory, model.Inventory()),
    (wire_host.encode_inventory, wire_host.decode_inventory, TELLING),
    (wire_host.encode_inventory, wire_host.decode_inventory, CUT),
    (wire_command.encode_command, wire_command.decode_command,
     model.Command(COMMAND, model.CommandKind.CREATE, create=SPEC)),
    (wire_command.encode_command, wire_command.decode_command,
     model.Command(COMMAND, model.CommandKind.DELETE, delete=model.DeleteSpec(WORKLOAD, SLOTS, 5))),
    (wire_command.encode_command, wire_command.decode_command,
     model.Command(COMMAND, model.CommandKind.MEASURE_BANDWIDTH, bandwidth=model.BandwidthSpec(1, 2, "n", ("a",)))),
    (wire_command.encode_command, wire_command.decode_command, model.Command(COMMAND, model.CommandKind.BENCHMARK)),
    (wire_command.encode_command, wire_command.decode_command,
     model.Command(COMMAND, model.CommandKind.PARTITION,
                   partition=model.PartitionSpec(GpuUuid("GPU-1"), ("3g.40gb", "1g.10gb")))),
    (wire_command.encode_command, wire_command.decode_command,
     model.Command(COMMAND, model.CommandKind.START, start=model.StartSpec(WORKLOAD, SLOTS))),
    (wire_command.encode_status, wire_command.decode_status,
     model.CommandStatus(COMMAND, model.CommandPhase.FAILED, "pulling", 500, "image_unavailable", "no\nimage",
                         {"a": "b"}, 4)),
    (wire_command.encode_leases, wire_command.decode_leases, (model.LeaseRenewal(WORKLOAD, 1, 2, 3),)),
    (wire_host.encode_observed, wire_host.decode_observed,
     model.Observed((model.ObservedWorkload(WORKLOAD, model.WorkloadPhase.EXITED, SLOTS, 0, 5, "docker", {"22": 40001},
                                            "x"),
                     model.ObservedWorkload(WORKLOAD, model.WorkloadPhase.RUNNING),
                     model.ObservedWorkload(WORKLOAD, model.WorkloadPhase.GONE, SLICE,
                                            faults={SlotId("MIG-1"): "in use"})), bytes(32), 6)),
    (wire_host.encode_receipt, wire_host.decode_receipt,
     model.Receipt(WORKLOAD, CLUSTER, SLOTS, 2, 10**12, 1, 2, True, -9, "exited")),
    (wire_host.encode_event, wire_host.decode_event, model.Event("gpu.xid", 3, "GPU-1", "79", {"xid": "79"})),
    (wire_host.encode_bandwidth, wire_host.decode_bandwidth,
     BandwidthResult("n", "acc_1", "eu", 1, 2, 3, 4, 5, 6, wire_host.encode_claim(CLAIM), bytes(64), 1000)),
    (wire_host.encode_claim, wire_host.decode_claim, CLAIM),
    (wire_link.encode_hello, wire_link.decode_hello,
     m.Hello(1, "0.1.0", bytes(32), 3, 4, "abc", True, MARKS, 5)),
    (wire_link.encode_hello, wire_link.decode_hello,
     m.Hello(1, "0.1.0", bytes(32), 3, 4, "abc", True, MARKS, 5, second=True, encrypts=True)),
    (wire_link.encode_welcome, wire_link.decode_welcome,
     m.Welcome(1, 2, bytes(32), MARKS, SETTINGS, 7, bytes(32), True)),
    (wire_link.encode_welcome, wire_link.decode_welcome,
     m.Welcome(1, 2, bytes(32), MARKS, SETTINGS, 7, bytes(32), True, encrypts=True)),
    (wire_link.encode_ack, wire_link.decode_ack, m.Ack(MARKS, (), 4)),
    (wire_link.encode_settings, wire_link.decode_settings, SETTINGS),
    (wire_link.encode_heartbeat, wire_link.decode_heartbeat,
     m.Heartbeat(1, 2, "h", bytes(32), ("gpu.hang",), 10**9, "acc_1", 55, 66, (("acc_1", 55), ("acc_2", 0)))),
    (wire_link.encode_heartbeat, wire_link.decode_heartbeat, m.Heartbeat(1, 2, "h", bytes(32))),
    (wire_link.encode_heartbeat_reply, wire_link.decode_heartbeat_reply, m.HeartbeatReply(1, 2, True, False)),
    (wire_link.encode_canary, wire_link.decode_canary,
     Canary(3, 2, {Lane.CONTROL: Sent(3, 7)}, {Lane.EVIDENCE: Heard(1 << 40, 9)}, 1 << 41)),
    (wire_link.encode_canary_reply, wire_link.decode_canary_reply, CanaryReply(3, 1, 2)),
    (wire_link.encode_gap, wire_link.decode_gap, m.Gap(Lane.TELEMETRY, BOOT, ((1, 9),), "spool_cap")),
    (wire_link.encode_query, wire_link.decode_query, m.Query((COMMAND,), True)),
    (wire_link.encode_region_map, wire_link.decode_region_map,
     m.RegionMap(3, (m.AccessPoint("acc_1", "eu", "127.0.0.1:7443", 10, True),))),
    (wire_link.encode_channel, wire_link.decode_channel,
     m.Channel(1, m.ChannelOpen(WORKLOAD, model.ChannelPurpose.EXEC, ("ls",), 5, True, True, 80, True,
                                  cord_own="198.19.7.1", cord_peer="198.19.7.2"))),
    (wire_link.encode_channel, wire_link.decode_channel, m.Channel(1, m.ChannelData(b"abc", 2))),
    (wire_link.encode_channel, wire_link.decode_channel, m.Channel(1, m.ChannelCredit(65_536))),
    (wire_link.encode_channel, wire_link.decode_channel,
     m.Channel(1, m.ChannelClose("too_large", "cut", 1, True, True))),
    (wire_link.encode_channel, wire_link.decode_channel, m.Channel(1, m.ChannelClose())),
]  # fmt: skip
