"""Writes docs/permissions.md (who may ask which route): `python -m windrow_master.api.permissions FILE`.

The tests call every route as everybody and compare with that page.
"""

import sys
from pathlib import Path
from typing import Final

from windrow_master.api.routers import declared
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.identity.model import Role

HEAD: Final = """# Who may ask what

Written from the routes by `make openapi`. A test compares this page with the routes; another calls every route as
everybody and compares the answers. `yes`: with that role alone. `401` without a sign-in, `403` without the role, `404`
for an object that is not in reach. Lists hold what is in reach. A token has at most the roles of its account; the first
account has all of them. Hosts are the market's shop window: all who are signed in see them, and only their owner and
operators decide about them. Who asks `/events` for one subject is told what concerns themselves, or what is public.
`again`: a browser's session gives a password, a code or a token again where its user has given none for ten minutes; a
token with a spending limit is refused there, but for new tokens, which count for it.

`shared at`: the level of a share (see, use or manage) by which others than the owning project reach the object, too
([people.md](people.md#sharing)). A share with a user lets that user in whatever the roles are; one with a project or an
organisation lets their people do what the roles in their own project allow. Who has a share at a lower level gets
`403`. A route without a level is for the owning project alone. An object of others is answered as one that there is
not.

"""


def document() -> str:
    """The page, as Markdown."""
    roles = sorted(Role)
    lines = [
        f"| route | permission | nobody | {' | '.join(roles)} | objects by id | shared at |",
        f"|---|---|---|{'---|' * len(roles)}---|---|",
    ]
    for (method, path), rules in sorted(declared().items(), key=lambda row: (row[0][1], row[0][0])):
        known = "yes" if rules.may is Permission.NOBODY else "401"
        cells = ["yes" if is_allowed(frozenset({role}), rules.may) else "403" for role in roles]
        cells += [rules.reach or "", rules.shared or ""]
        named = f"{rules.may}, again" if rules.changes_rights else rules.may
        lines.append(f"| `{method} {path}` | {named} | {known} | {' | '.join(cells)} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
