"""Detects copies of an agent: notes which process of a host was heard last, and which it replaced.

Pure of waiting. A process that has ended never speaks again, so a boot seen again after a later one means that two
agents hold one identity, whether or not they were ever connected at the same time.
"""

from typing import Final

from windrow_proto.ids import BootId, HostId

REPLACED_MAX: Final = 16
"""Boots remembered for each host; the oldest is forgotten first."""


class Copies:
    """The boots of each host in the order they were confirmed, since this Master started."""

    def __init__(self) -> None:
        self._last: dict[HostId, BootId] = {}
        self._replaced: dict[HostId, dict[BootId, None]] = {}

    def is_copy(self, host_id: HostId, boot: BootId) -> bool:
        """Note that this boot spoke; whether another had taken its place before."""
        replaced = self._replaced.setdefault(host_id, {})
        if boot in replaced:
            return True
        before = self._last.get(host_id, boot)
        self._last[host_id] = boot
        if before != boot:
            replaced[before] = None
            if len(replaced) > REPLACED_MAX:
                replaced.pop(next(iter(replaced)))
        return False

    def forget(self, host_id: HostId) -> None:
        """People have looked at this host and let it serve again: whoever is left is the host."""
        self._last.pop(host_id, None)
        self._replaced.pop(host_id, None)
