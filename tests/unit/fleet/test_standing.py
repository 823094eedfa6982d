"""A GPU's standing: the worst that conditions say of it, and the link it had while it worked."""

import pytest

from windrow_master.fleet.model import Condition
from windrow_master.fleet.standing import health_of, link_at_work, standing_of
from windrow_master.fleet.tiers import Health, Standing
from windrow_proto.ids import GpuUuid
from windrow_proto.model import GpuFacts

MINE = GpuUuid("GPU-1")


def gpu(**more: int | str) -> GpuFacts:
    return GpuFacts(MINE, 0, "nvidia", "X", more=more)


@pytest.mark.parametrize(
    ("codes", "health"),
    [
        ([], Health.OK),
        (["clock.skew", "gpu.foreign_use:GPU-1", "gpu.hot:GPU-2", "gpu.lost:GPU-2"], Health.OK),
        (["gpu.hot:GPU-1"], Health.DEGRADED),
        (["gpu.throttled:GPU-1"], Health.DEGRADED),
        (["gpu.remap_pending:GPU-1"], Health.DEGRADED),
        (["gpu.hot:GPU-1", "gpu.host_fault:GPU-1"], Health.FAILED),
        (["gpu.lost:GPU-1"], Health.FAILED),
        (["gpu.sweep_stalled"], None),
        (["gpu.sweep_stalled", "gpu.hot:GPU-1"], None),
        (["gpu.sweep_stalled", "gpu.lost:GPU-1"], Health.FAILED),
    ],
)
def test_health_is_the_worst_that_is_said_of_this_gpu_and_no_neighbour(codes: list[str], health: Health | None):
    assert health_of(MINE, [Condition(code, "", 1) for code in codes]) == health


@pytest.mark.parametrize(
    ("more", "link"),
    [
        ({"pcie_generation_loaded": 4, "pcie_width_loaded": 8}, (4, 8)),
        ({}, None),
        ({"pcie_generation_loaded": 4}, None),
        ({"pcie_generation_loaded": "4", "pcie_width_loaded": 8}, None),
        ({"pcie_generation_loaded": 0, "pcie_width_loaded": 8}, None),
        ({"pcie_generation_loaded": 1 << 40, "pcie_width_loaded": 16}, None),
    ],
)
def test_the_link_at_work_is_what_was_seen_or_not_known(more: dict[str, int | str], link: tuple[int, int] | None):
    assert link_at_work(gpu(**more)) == link


@pytest.mark.parametrize("figure", [None, 0.97])
def test_a_standing_holds_health_link_and_what_is_known_of_reliability(figure: float | None):
    seen = standing_of(gpu(pcie_generation_loaded=4, pcie_width_loaded=8), [], figure)
    assert seen == Standing(Health.OK, figure, (4, 8))
