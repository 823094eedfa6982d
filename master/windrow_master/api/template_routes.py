"""Routes of templates: requests for clusters that are kept by name."""

from typing import Annotated, Any

from fastapi import Path, Response

from windrow_master.api import answers
from windrow_master.api.auth import Reach
from windrow_master.api.cluster_routes import ClusterBody, KeptRequestOut, template_json
from windrow_master.api.deps import Asking, Serving
from windrow_master.api.paging import Cursor, Limit, page_of
from windrow_master.api.route import Routes
from windrow_master.clusters.templates import TEMPLATES_MAX
from windrow_master.identity.decide import Permission
from windrow_master.identity.object_shares import Level

route = Routes("templates")

Name = Annotated[
    str,
    Path(
        pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$",
        description="At most 64 small letters, digits, dots, dashes and underscores; the first a letter or digit",
    ),
]


class TemplateOut(answers.Out):
    """A request for a cluster, to be sent to `POST /clusters` as it is or changed."""

    name: str
    request: KeptRequestOut
    saved_at: answers.Time


@route.get("/templates", may=Permission.RENT, answer=answers.Page[TemplateOut])
async def templates(services: Serving, principal: Asking, limit: Limit = TEMPLATES_MAX, cursor: Cursor = None) -> Any:
    """The templates of the account, by name."""
    return page_of(await services.templates.list(principal), limit, cursor, template_json, lambda one: one.name)


@route.get("/templates/{name}", may=Permission.RENT, reach=Reach.OWN, shared=Level.USE, answer=TemplateOut)
async def template(services: Serving, principal: Asking, name: Name) -> Any:
    """One template of the account, or by the id of a share one that is shared with the caller, then without the values
    of its environment."""
    shows_env = principal.own_account_id is None
    return template_json(await services.templates.get(principal, name), shows_env=shows_env)


@route.put("/templates/{name}", may=Permission.RENT, reach=Reach.ALL, answer=TemplateOut)
async def save_template(services: Serving, principal: Asking, name: Name, body: ClusterBody) -> Any:
    """Keep a request under a name, in place of what was kept there. A login for a registry is not kept."""
    return template_json(await services.templates.save(principal, name, body.parsed()))


@route.delete("/templates/{name}", may=Permission.RENT, reach=Reach.OWN, status_code=204)
async def delete_template(services: Serving, principal: Asking, name: Name) -> Response:
    """Forget it; clusters that were made from it stay."""
    await services.templates.delete(principal, name)
    return Response(status_code=204)
