"""Decides which image a cluster runs: each host resolves a tag by itself, and no host's word decides for another. Pure.

A host may lie about the digest it found, which then only it runs. Where two hosts found the same digest, each by
itself, that digest is asked for from then on; where they found different ones, their cluster does not start.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from windrow_master.clusters.model import Workload
from windrow_proto.ids import HostId
from windrow_proto.image_names import is_pinned, parsed

FOUND_BY: Final = 2
"""Hosts that must have found the same digest before another is told to run it."""


def pin_of(image: str, workloads: Iterable[Workload], host_id: HostId | None = None) -> str:
    """The name by digest under which this image is to run; the image as it is where no digest is known well enough.

    workloads: those that ran it before. host_id: where it is to run; what was found there before holds for it.
    """
    if not image or is_pinned(image):
        return image
    found: dict[str, set[HostId]] = {}
    for one in workloads:
        if pins(one.image, image):
            found.setdefault(one.image, set()).add(one.host_id)
    known = {said for said, hosts in found.items() if len(hosts) >= FOUND_BY}
    own = {said for said, hosts in found.items() if host_id in hosts}
    chosen = known or own
    return chosen.pop() if len(chosen) == 1 else image


def disagreement(members: Sequence[Workload]) -> str:
    """Return why members may not start together: their hosts found different images under one name; empty: they may."""
    found = {one.image: one for one in members}
    if len(found) < 2:
        return ""
    told = (f"{one.host_name} found {parsed(image).digest or 'one without a digest'}" for image, one in found.items())
    name = next(iter(found)).partition("@")[0]
    return f"its hosts do not have the same image under {name}: {'; '.join(told)}. Name the image by its digest"


def is_same(image: str, offered: str | None) -> bool:
    """Return whether this is the image that a host's owner offers, by its name or by the digest that was found for
    it."""
    return offered is not None and (image == offered or pins(image, offered))


def pins(said: str, asked: str) -> bool:
    """Return whether `said` is what was asked for with a digest put to it, and nothing else."""
    name, other = parsed(said), parsed(asked)
    same = (name.repository, name.tag) == (other.repository, other.tag)
    return is_pinned(said) and not other.digest and same
