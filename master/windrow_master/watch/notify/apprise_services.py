"""Sends to chats and pagers; the adapter of apprise, which is installed by the extra `notify`."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from windrow_proto.errors import Unavailable

LIBRARY: Final = "apprise"
WAY: Final = "Install it beside the Master: pip install 'windrow-master[notify]'."


def is_installed() -> bool:
    """True if this Master has apprise."""
    return find_spec(LIBRARY) is not None


def send(url: str, title: str, text: str, tone: str) -> None:
    """Hand one message to the service of this URL, whose form was checked (HOST_OF_SERVICE). Follows no redirect.
    tone: success, warning or failure, by which pagers open and close incidents.
    Raises Unavailable. Blocks for some seconds at most."""
    if not is_installed():
        raise Unavailable(f"This Master has no {LIBRARY}. {WAY}")
    apprise: Any = import_module(LIBRARY)  # an extra, which most Masters do not have, and slow to load
    told = apprise.Apprise(asset=apprise.AppriseAsset(http_redirects=False))
    if not told.add(url):
        raise Unavailable("apprise does not know this URL: a part is missing, or has another form.")
    if not told.notify(text, title, notify_type=tone, body_format=apprise.NotifyFormat.TEXT):
        raise Unavailable("The service did not take the message.")
