"""Which image a cluster runs: a tag is resolved once, by the host that starts first, and is then its digest. Pure."""

from collections.abc import Iterable

from windrow_master.clusters.model import Workload
from windrow_proto.image_names import is_pinned, parsed


def pin_of(image: str, workloads: Iterable[Workload]) -> str:
    """The name by digest under which these workloads run this image; the image as it is where none does."""
    if not image or is_pinned(image):
        return image
    return next((one.image for one in workloads if pins(one.image, image)), image)


def pins(said: str, asked: str) -> bool:
    """Whether `said` is what was asked for with a digest put to it, and nothing else."""
    name, other = parsed(said), parsed(asked)
    same = (name.repository, name.tag) == (other.repository, other.tag)
    return is_pinned(said) and not other.digest and same
