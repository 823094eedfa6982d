"""Routes from which other machines download: the installers, and the files of one release with their signed manifest.

Open to all: nothing here is secret, and whoever installs trusts it by the key that the line pins.
"""

from typing import Annotated, Any, Final

from fastapi.responses import FileResponse, Response
from pydantic import Field

from windrow_master.api.answers import Out
from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.onboarding.join_line import cli_line, filled, is_loopback, join_line, link_note
from windrow_master.onboarding.service import Wheelhouse, carried, not_ready
from windrow_proto.errors import NotFound

SHELL: Final = "text/x-shellscript; charset=utf-8"
CLOUD_CONFIG: Final = "text/cloud-config; charset=utf-8"
NO_CACHE: Final = {"Cache-Control": "no-cache"}

root = Routes(None)
route = Routes("onboarding")


class CliOut(Out):
    """How to have the command `windrow` on another machine."""

    command: Annotated[
        str | None, Field(description="A line for a shell of Linux or macOS; null: this Master serves no HTTPS")
    ]
    url: Annotated[str, Field(description="The Master's address in it")]
    this_machine_only: Annotated[bool, Field(description="No other machine reaches that address")]
    link_note: Annotated[
        str | None, Field(description="Why a link here may not open for others, and what to do; null: it does")
    ]


@route.get("/cli", may=Permission.NOBODY, answer=CliOut)
async def command_line(services: Serving) -> Any:
    """The line that installs the command `windrow` from this Master."""
    url, pin = services.https_url, services.https_pin()
    if url and pin:
        services.cli_wheels.want()
    return {
        "command": cli_line(url, pin) if url and pin else None,
        "url": url,
        "this_machine_only": is_loopback(url),
        "link_note": link_note(url, services.shows_own_certificate()),
    }


@root.get("/install.sh", may=Permission.NOBODY, include_in_schema=False)
async def installer(services: Serving) -> Response:
    """The script that the join line runs; whoever fetches it will want the wheels next."""
    services.wheelhouse.want()
    return Response(_filled(services, "install.sh"), media_type=SHELL, headers=NO_CACHE)


@root.get("/install-cli.sh", may=Permission.NOBODY, include_in_schema=False)
async def cli_installer(services: Serving) -> Response:
    """The script that installs the command `windrow`."""
    services.cli_wheels.want()
    return Response(_filled(services, "install-cli.sh"), media_type=SHELL, headers=NO_CACHE)


@root.get("/cli/{name}", may=Permission.NOBODY, reach=Reach.ALL, include_in_schema=False)
async def cli_download(services: Serving, name: str) -> FileResponse:
    """One file of what the command is installed from, or their list; 503 while they are being prepared."""
    return _prepared(services.cli_wheels, "cli", name)


@root.get("/cloud-init.yaml", may=Permission.NOBODY, include_in_schema=False)
async def cloud_init(services: Serving) -> Response:
    """User data for machines that join at their first boot; the join token is for a person to put in."""
    return Response(_filled(services, "cloud-init.yaml"), media_type=CLOUD_CONFIG, headers=NO_CACHE)


def _filled(services: Services, name: str) -> str:
    text = carried(name).read_text(encoding="utf-8")
    return filled(text, services.https_url, services.https_pin(), services.packages.signer)


@root.get("/dl/{name}", may=Permission.NOBODY, reach=Reach.ALL, include_in_schema=False)
async def download(services: Serving, name: str) -> FileResponse:
    """One file of a manifest, or a manifest; 503 while it is being prepared, with how far it is."""
    packages = services.packages
    if packages.serves(name):
        packages.want()
        path = packages.file(name)
        if path is None:
            raise not_ready(packages.progress)
        return FileResponse(path, headers=NO_CACHE)
    return _prepared(services.wheelhouse, "dl", name)


def _prepared(wheelhouse: Wheelhouse, folder: str, name: str) -> FileResponse:
    """A file of these, once they are there. Raises Unavailable, Conflict, NotFound."""
    wheelhouse.want()
    if wheelhouse.file("manifest.json") is None:
        raise not_ready(wheelhouse.progress)
    path = wheelhouse.file(name)
    if path is None:
        raise NotFound(f"There is no file /{folder}/{name[:200]}.")
    return FileResponse(path, headers=NO_CACHE)


def join_command(services: Services, token: str) -> str:
    """The line that brings a host in with this join token; who runs it will want the wheels, not who asks for it."""
    return join_line(services.https_url, services.https_pin(), token)
