"""Says which share of the Master each request takes, and until when it holds that: to the last byte of its answer."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

from windrow_master.identity.model import Principal
from windrow_master.shares import Share, ShareLimits, Shares

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

_HELD: Final = "windrow.shares"
_PREFIX: Final = "/api/v1"
_ARTEFACT: Final = "/artefacts/{owner_kind}/{owner_id}/{name:path}"
_STREAMED: Final = frozenset(
    {
        *(("GET", "/events/stream"), ("GET", "/fleet/stream"), ("GET", "/hosts/{host_id}/stream")),
        ("GET", "/clusters/{cluster_id}/stream"),
    }
)
_DOWNLOADED: Final = frozenset(
    {
        *(("GET", "/clusters/{cluster_id}/logs"), ("POST", "/clusters/{cluster_id}/exec")),
        *(("GET", "/clusters/{cluster_id}/files"), ("GET", _ARTEFACT)),
        *(("GET", "/jobs/{job_id}/logs"), ("GET", "/jobs/{job_id}/artefacts")),
    }
)
_EXPORTED: Final = ("GET", "/hosts/{host_id}/export")
_UPLOADED: Final = frozenset(
    {("PUT", "/clusters/{cluster_id}/files"), ("PUT", "/jobs/{job_id}/files"), ("PUT", _ARTEFACT)}
)


@dataclass(slots=True)
class RequestShares:
    """What requests of all accounts take of one Master."""

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

    def kind(self, method: str, template: str) -> Shares:
        """What a request of this route takes."""
        route = method, template.removeprefix(_PREFIX)
        if route in _STREAMED:
            return self.streams
        if route in _DOWNLOADED:
            return self.downloads
        if route == _EXPORTED:
            return self.exports
        return self.uploads if route in _UPLOADED else self.requests

    def take(self, scope: MutableMapping[str, Any], template: str, principal: Principal) -> None:
        """Take a share for a request, once. Raises TooMany."""
        if _HELD in scope:
            return
        kind = self.kind(scope["method"], template)
        scope[_HELD] = kind.take(principal.holder, is_trusted=principal.is_trusted)


def give_back(scope: MutableMapping[str, Any]) -> None:
    """The request's answer has ended, however."""
    held: Share | None = scope.get(_HELD)
    if held is not None:
        held.give_back()
