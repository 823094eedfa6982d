"""Signs this machine in by a code that its user approves in a browser (the device authorisation grant, RFC 8628)."""

import platform
import sys
import time
from dataclasses import replace
from typing import Any, Final

from windrow.cli.output import plain, say
from windrow.client import Client
from windrow.config import Config, has_display
from windrow.errors import ApiProblem, MasterUnreachable, WaitTimedOut, WindrowClientError

PENDING: Final = "authorization_pending"
SLOW_DOWN: Final = "slow_down"
SLOWER_S: Final = 5
"""By which the pause grows where the Master says that it is asked too often (RFC 8628, 3.5)."""
INTERVAL_S_MAX: Final = 60
EXPIRES_S_MAX: Final = 1_800
"""Whatever the Master says: a command ends by itself."""


def signed_in(place: Config) -> Config:
    """The same with a token, once somebody has approved this machine in a browser. Raises ApiProblem where it was
    refused or its code has expired, WaitTimedOut."""
    name = platform.node()[:60] or "a host"
    with Client(place) as api:
        begun = api.request("POST", "/device", body={"name": name})
        address = str(begun["verification_uri_complete"])
        if not address.startswith(("https://", "http://")):
            raise WindrowClientError(f"{place.url} names no page to sign in at. Is a Master there?")
        say(f"Open this page in a browser, compare the code {plain(begun['user_code'])}, and approve {name}:")
        say(f"  {plain(address)}")
        if sys.stderr.isatty() and has_display():
            import webbrowser  # which no other command needs

            webbrowser.open(address)
        return replace(place, token=_token(api, begun))


def _token(api: Client, begun: dict[str, Any]) -> str:
    pause_s = min(max(1, int(begun["interval"])), INTERVAL_S_MAX)
    ends = time.monotonic() + min(int(begun["expires_in"]), EXPIRES_S_MAX)
    while time.monotonic() + pause_s < ends:
        time.sleep(pause_s)
        try:
            made = api.request("POST", "/device/token", body={"device_code": begun["device_code"]})
            return str(made["token"])
        except MasterUnreachable:
            continue  # it may be back before the code expires
        except ApiProblem as problem:
            if problem.code == SLOW_DOWN:
                pause_s = min(pause_s + SLOWER_S, INTERVAL_S_MAX)
            elif problem.code != PENDING and problem.status != 429:
                raise
    raise WaitTimedOut("Nobody approved this machine in time. Begin again: windrow login URL")
