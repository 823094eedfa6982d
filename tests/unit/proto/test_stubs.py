"""The committed stubs load and agree with what the values say."""

from windrow_proto.v1 import host_pb2, link_pb2, services_pb2


def test_every_message_of_the_contract_can_be_made_and_read_back():
    frame = link_pb2.Frame(frame_class=link_pb2.FRAME_CLASS_LIVE, lane=link_pb2.LANE_TELEMETRY, sequence=7, sealed=b"x")
    batch = services_pb2.TrunkBatch(items=[services_pb2.TrunkItem(route=3, frame=frame)])

    again = services_pb2.TrunkBatch.FromString(batch.SerializeToString())

    assert again.items[0].frame.sequence == 7
    assert host_pb2.Inventory().gpus == []
