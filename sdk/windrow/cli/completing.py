"""Names on the command line that the shell completes: asked from the Master, within a moment, and never an error."""

from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import Any, Final

import typer

PATIENCE_S: Final = 1.0
"""A person who presses Tab waits no longer; without an answer nothing is completed."""
SHOWN_MAX: Final = 200


def _names(context: typer.Context, incomplete: str, paths: Iterable[str]) -> list[str]:
    """The names in these lists that begin so."""
    found: list[str] = []
    url = context.find_root().params.get("url")
    looking = Thread(target=_look, args=(url, incomplete, tuple(paths), found), daemon=True)
    looking.start()
    looking.join(PATIENCE_S)
    return sorted(set(found))


def _look(url: str | None, incomplete: str, paths: Iterable[str], found: list[str]) -> None:
    from windrow.client import Client  # slow to load, and part of the moment
    from windrow.config import find

    try:
        with Client(find(url)) as api:
            for path in paths:
                for item in _page(api, path):
                    name = str(item.get("name") or "")
                    if name.startswith(incomplete) and name.isprintable():
                        found.append(name)
    except Exception:  # whatever it is: a shell shows it in the middle of a line
        return


def _page(api: Any, path: str) -> Iterator[dict[str, Any]]:
    yield from api.get(path, limit=SHOWN_MAX)["items"]


def of(*paths: str) -> Callable[[typer.Context, str], list[str]]:
    """Completes the names of the things in these lists of the API."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return _names(ctx, incomplete, paths)

    return complete


clusters = of("/clusters")
jobs = of("/jobs")
work = of("/clusters", "/jobs")
hosts = of("/hosts")
things = of("/clusters", "/jobs", "/hosts")
secrets = of("/secrets")
channels = of("/channels")
volumes = of("/volumes")
backends = of("/backends")
templates = of("/templates")

BY_FIELD: Final = {
    "host_id": hosts,
    "secrets": secrets,
    "registry_secret": secrets,
    "volumes": volumes,
    **dict.fromkeys(("after", "after_any", "after_failure"), jobs),
}
"""By the field of a request that an option fills."""
