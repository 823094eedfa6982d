"""Routes from which a joining machine downloads: the installer, and the files of one release with their signed
manifest.

Open to all: nothing here is secret, and whoever installs trusts it by the key that the join line pins.
"""

from typing import Final

from fastapi.responses import FileResponse, Response

from windrow_master.api.auth import Reach
from windrow_master.api.deps import Services, Serving
from windrow_master.api.route import Routes
from windrow_master.identity.decide import Permission
from windrow_master.onboarding.join_line import filled, join_line
from windrow_master.onboarding.service import carried, not_ready
from windrow_proto.errors import NotFound

SHELL: Final = "text/x-shellscript; charset=utf-8"
CLOUD_CONFIG: Final = "text/cloud-config; charset=utf-8"
NO_CACHE: Final = {"Cache-Control": "no-cache"}

root = Routes(None)


@root.get("/install.sh", may=Permission.NOBODY, include_in_schema=False)
async def installer(services: Serving) -> Response:
    """The script that the join line runs; whoever fetches it will want the wheels next."""
    services.wheelhouse.want()
    return Response(_filled(services, "install.sh"), media_type=SHELL, headers=NO_CACHE)


@root.get("/cloud-init.yaml", may=Permission.NOBODY, include_in_schema=False)
async def cloud_init(services: Serving) -> Response:
    """User data for machines that join at their first boot; the join token is for a person to put in."""
    return Response(_filled(services, "cloud-init.yaml"), media_type=CLOUD_CONFIG, headers=NO_CACHE)


def _filled(services: Services, name: str) -> str:
    text = carried(name).read_text(encoding="utf-8")
    return filled(text, services.https_url, services.https_pin, services.packages.signer)


@root.get("/dl/{name}", may=Permission.NOBODY, reach=Reach.ALL, include_in_schema=False)
async def download(services: Serving, name: str) -> FileResponse:
    """One file of a manifest, or a manifest; 503 while it is being prepared, with how far it is."""
    wheelhouse, packages = services.wheelhouse, services.packages
    if packages.serves(name):
        packages.want()
        path = packages.file(name)
        if path is None:
            raise not_ready(packages.progress)
        return FileResponse(path, headers=NO_CACHE)
    wheelhouse.want()
    if wheelhouse.file("manifest.json") is None:
        raise not_ready(wheelhouse.progress)
    path = wheelhouse.file(name)
    if path is None:
        raise NotFound(f"There is no file /dl/{name[:200]}.")
    return FileResponse(path, headers=NO_CACHE)


def join_command(services: Services, token: str) -> str:
    """The line that brings a host in with this join token; who runs it will want the wheels, not who asks for it."""
    return join_line(services.https_url, services.https_pin, token)
