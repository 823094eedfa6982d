"""What is computed from the whole fleet is computed once per version of it."""

from windrow_master.fleet.model import Host
from windrow_master.fleet.view import FleetView, once_per_version
from windrow_proto.ids import AccountId, HostId


def test_a_result_is_kept_until_a_host_changes_and_is_of_its_own_view() -> None:
    asked: list[int] = []

    @once_per_version
    def hosts(view: FleetView) -> int:
        asked.append(len(view))
        return len(view)

    one, other = FleetView(), FleetView()
    assert (hosts(one), hosts(one), asked) == (0, 0, [0])
    one.put(Host(HostId("host_1"), "box", AccountId("account_1"), False, 0), ())
    assert (hosts(one), hosts(one), hosts(other), asked) == (1, 1, 0, [0, 1, 0])
