"""Names of images: what a name says, how a host finds and asks for it, and how all hosts name the same one. Pure.

A pinned name holds the digest of one manifest: `python:3.12@sha256:...`. The tag is for people; daemons get the rest.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,182}(@sha256:[0-9a-f]{64})?")
"""The names that a request may use."""
ID: Final = re.compile(r"(sha256:)[0-9a-f]+|[0-9a-f]{64}")
"""How daemons name what they hold by its content, whatever it is called and wherever it came from."""
HUB: Final = "docker.io"
"""The registry in which daemons look for names without one, and the name that they know it under."""


@dataclass(frozen=True, slots=True)
class ImageName:
    """One name in its parts; tag and digest are empty where it has none."""

    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def asked(self) -> str:
        """The name that daemons take: Podman refuses a tag beside a digest."""
        return f"{self.repository}@{self.digest}" if self.digest else str(self)

    @property
    def whole(self) -> str:
        """The same with the registry, the folder and the tag that daemons add: it can mean nothing else on a host."""
        return str(ImageName(_whole(self.repository), "" if self.digest else self.reference, self.digest))

    @property
    def reference(self) -> str:
        """The reference by which a registry is asked in this repository."""
        return self.digest or self.tag or "latest"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}" + (f"@{self.digest}" if self.digest else "")


def parsed(image: str) -> ImageName:
    """An image's name in its parts; what follows an `@` that is no digest of ours is left as it was written."""
    name, _, digest = image.partition("@")
    head, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:
        head, tag = name, ""
    return ImageName(head, tag, digest)


def is_name(image: str) -> bool:
    """True if a request may name an image so."""
    return NAME.fullmatch(image) is not None


def is_id(image: str) -> bool:
    """True if this names what one daemon holds, and nothing that a registry could be asked for."""
    return ID.fullmatch(image) is not None


def is_pinned(image: str) -> bool:
    """True if it names one manifest for good."""
    return DIGEST.fullmatch(parsed(image).digest) is not None


def pinned(image: str, known: Iterable[str]) -> str:
    """The name with the digest that its registry knows it under; empty where it came from no registry.

    known: the `repository@digest` that a daemon keeps with an image.
    """
    if is_pinned(image):
        return image
    name = parsed(image)
    for one in known:
        other = parsed(one)
        if DIGEST.fullmatch(other.digest) and _whole(other.repository) == _whole(name.repository):
            return str(ImageName(name.repository, name.tag, other.digest))
    return ""


def _whole(repository: str) -> str:
    """A repository with the registry and the folder that daemons add."""
    first, slash, rest = repository.partition("/")
    is_host = "." in first or ":" in first or first == "localhost"
    if slash and is_host and first != HUB:
        return repository
    inside = rest if is_host and slash else repository
    return f"{HUB}/{inside if '/' in inside else f'library/{inside}'}"
