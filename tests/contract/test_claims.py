"""Claims of the driver's library reach the check as the library made them: lies through the real nvidia-ml-py are
found."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fake_nvml.build import fake_library as fake_library
from tests.fake_nvml.build import installed
from tests.fake_nvml.state import H100, RTX_4090, FakeState
from windrow_agent.core.inventory import HostFacts, build_inventory
from windrow_agent.gpu.nvml import NvmlBackend
from windrow_master.fleet.claims.consistency import check
from windrow_proto.model import Inventory
from windrow_proto.wire_host import decode_inventory, encode_inventory

pytestmark = pytest.mark.proves("claims of a fake driver, through the real nvidia-ml-py, held against the model table")


@pytest.fixture
def read(fake_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Gives the inventory of a host whose fake driver says this of its eight cards, over the wire."""

    def inventory(persona: dict[str, Any], **of_third: object) -> Inventory:
        state = FakeState(tmp_path / "state", persona=persona)
        for name, value in of_third.items():
            setattr(state.gpu(3), name, value)
        for _ in installed(fake_library, state, monkeypatch):
            backend = NvmlBackend(pci_devices=tmp_path / "pci")
            assert backend.open() is None
            found = build_inventory(HostFacts(), backend.inventory(), agent_version="1", simulated=False)
            backend.close()
        return decode_inventory(encode_inventory(found))

    yield inventory


@pytest.mark.parametrize("persona", [H100, RTX_4090], ids=["H100", "RTX 4090"])
def test_the_fake_drivers_own_cards_are_honest(read: Any, persona: dict[str, Any]) -> None:
    inventory = read(persona)
    assert len(inventory.gpus) == 8
    assert check(inventory) == ()


@pytest.mark.parametrize(
    ("persona", "lie", "codes"),
    [
        (RTX_4090, {"name": b"NVIDIA H100 80GB HBM3"}, {"claim.name"}),
        (H100, {"pci_device": 0x268410DE}, {"claim.name", "claim.memory", "claim.capability", "claim.bandwidth"}),
        (H100, {"memory_total": 40 << 30}, {"claim.memory"}),
        (H100, {"memory_total": 79 << 30}, {"claim.memory_unlike"}),
        (H100, {"power_limit_mw": 900_000}, {"claim.power"}),
        (H100, {"power_limit_max_mw": 800_000}, {"claim.power_unlike"}),
        (H100, {"serial": b"1650000000000"}, {"claim.serial_twice"}),
        (H100, {"uuid": b"GPU-of-my-own"}, {"claim.uuid"}),
        (H100, {"bus_id": b"00000000:18:00.0"}, {"claim.pci_address_twice"}),
        (H100, {"minor": 0}, {"claim.minor_twice"}),
        (H100, {"cores": 16897}, {"claim.cores"}),
        (H100, {"capability_minor": 5}, {"claim.capability"}),
        (RTX_4090, {"mig_mode": 1}, {"claim.mig"}),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) and len(value) == 1 else "",
)
def test_a_lie_of_the_fourth_card_is_found(
    read: Any, persona: dict[str, Any], lie: dict[str, object], codes: set[str]
) -> None:
    inventory = read(persona, **lie)
    found = check(inventory)
    assert {finding.code for finding in found} == codes
    assert inventory.gpus[3].uuid in {finding.subject for finding in found}
