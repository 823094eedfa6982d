"""Counts each request against its account's share of the Master, to the last byte of its answer."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from windrow_master.identity.model import Principal
from windrow_master.shares import Share, ShareLimits, Shares
from windrow_proto.units import GIB, MIB

REQUESTS: Final = ShareLimits(limit=512, per_account=128, reserve=64)
"""Requests under way; each may hold a body of a MiB."""
STREAMS: Final = ShareLimits(limit=1_000, per_account=100, reserve=100)
"""Live streams of events."""
DOWNLOADS: Final = ShareLimits(limit=256, per_account=64, reserve=32)
"""Logs, output of commands, folders and artefacts on their way out."""
EXPORTS: Final = ShareLimits(limit=4, per_account=2, reserve=1)
"""Files of history; each holds a question to it and, for Parquet, a folder on the disk."""
UPLOADS: Final = ShareLimits(limit=64, per_account=16, reserve=8)
"""Folders and artefacts on their way in."""
FOLDER_MAX: Final = 1 * GIB + 16 * MIB
"""Bytes of an upload: a folder is at most 1 GiB; the rest is what tar adds."""

_HELD: Final = "windrow.shares"


class ShareKind(StrEnum):
    """The kind of share of the Master that a route's requests take."""

    REQUESTS = "requests"
    STREAMS = "streams"
    DOWNLOADS = "downloads"
    EXPORTS = "exports"
    UPLOADS = "uploads"


@dataclass(slots=True)
class RequestShares:
    """The shares of one Master that requests of all accounts take."""

    requests: Shares = field(default_factory=lambda: Shares("requests under way", "Wait for their answers.", REQUESTS))
    streams: Shares = field(default_factory=lambda: Shares("live streams", "Close one.", STREAMS))
    downloads: Shares = field(
        default_factory=lambda: Shares("logs, commands and downloads", "End one, or wait for one.", DOWNLOADS)
    )
    exports: Shares = field(default_factory=lambda: Shares("exports", "Wait until one has ended.", EXPORTS))
    uploads: Shares = field(default_factory=lambda: Shares("uploads", "Wait until one has ended.", UPLOADS))

    def all(self) -> tuple[Shares, ...]:
        """Each of them."""
        return self.requests, self.streams, self.downloads, self.exports, self.uploads

    def of(self, kind: ShareKind) -> Shares:
        """The share of that kind."""
        shares: Shares = getattr(self, kind)
        return shares

    def take(self, scope: MutableMapping[str, Any], kind: ShareKind, principal: Principal) -> None:
        """Take a share for a request, once. Raises TooMany."""
        if _HELD in scope:
            return
        scope[_HELD] = self.of(kind).take(principal.holder, is_trusted=principal.is_trusted)


def give_back(scope: MutableMapping[str, Any]) -> None:
    """The request's answer has ended, however."""
    held: Share | None = scope.get(_HELD)
    if held is not None:
        held.give_back()
