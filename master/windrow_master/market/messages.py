"""Messages of the market to the packages above it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from windrow_master.store.messages import Fact
from windrow_proto.ids import ClusterId


@dataclass(frozen=True, slots=True)
class LimitsChanged(Fact):
    """A spending limit was set or removed that these clusters, which are rented, count for."""

    cluster_ids: Sequence[ClusterId]
