"""The values of onboarding: the files for a machine that joins with their digests, under one signature, and how far
they are. Pure.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

RELEASE_HEX: Final = 12
"""48 bits of the digest over all files: names one release among the few that one machine ever sees."""


class Phase(StrEnum):
    """The phase of preparing the wheels."""

    ABSENT = "absent"
    PREPARING = "preparing"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Progress:
    """A phase, what it is about in words, and for preparing how many of how many files have been asked for. of: the
    program that the wheels are of."""

    phase: Phase
    detail: str = ""
    done: int = 0
    total: int = 0
    of: str = "agent"

    def sentence(self) -> str:
        """Return the notice for a machine that has to wait, or for an operator."""
        match self.phase:
            case Phase.ABSENT:
                return f"The {self.of}'s wheels are not prepared yet. The Master prepares them now: ask again soon."
            case Phase.PREPARING:
                return f"The {self.of}'s wheels are being prepared: {self.detail} ({self.done} of {self.total})."
            case Phase.READY:
                return f"The {self.of}'s wheels are ready: {self.total} files."
            case Phase.FAILED:
                return f"The {self.of}'s wheels could not be prepared: {self.detail} It is tried again every minute."


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file to hand out. kind: wheel, unit or script."""

    name: str
    kind: str
    size_bytes: int
    sha256: str

    @staticmethod
    def of(name: str, kind: str, content: bytes) -> "Artifact":
        """The entry of these bytes."""
        return Artifact(name, kind, len(content), hashlib.sha256(content).hexdigest())


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of one release. python: `3.11`. platform: as sysconfig names it. wanted: digest of what was locked."""

    python: str
    platform: str
    wanted: str
    files: tuple[Artifact, ...]

    @property
    def release(self) -> str:
        """A short name that changes whenever any file does."""
        lines = "".join(f"{file.sha256} {file.name}\n" for file in self.files)
        return hashlib.sha256(lines.encode()).hexdigest()[:RELEASE_HEX]


def by_name(files: Sequence[Artifact]) -> tuple[Artifact, ...]:
    """In the order that a release is computed in."""
    return tuple(sorted(files, key=lambda file: file.name))


def record_of(manifest: Manifest) -> dict[str, Any]:
    """Return the bytes that windrow_proto.manifest signs."""
    return {
        "release": manifest.release,
        "python": manifest.python,
        "platform": manifest.platform,
        "wanted": manifest.wanted,
        "files": [
            {"name": file.name, "kind": file.kind, "size_bytes": file.size_bytes, "sha256": file.sha256}
            for file in manifest.files
        ],
    }
