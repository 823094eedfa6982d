"""Who may ask what, written from the tables that decide it: `python -m windrow_master.api.permissions FILE`.

`OBJECTS` says for every route that names one object by its id whose objects a caller with the permission reaches; the
rest are not there for it (404). The tests call every route as everybody and compare.
"""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Final

from windrow_master.api.auth import RULES, V1
from windrow_master.identity.decide import Permission, is_allowed
from windrow_master.identity.model import Role


class Reach(StrEnum):
    """Whose objects a route reaches."""

    ALL = "everybody's"
    OWN = "own"
    OWN_OR_OVERSEEN = "own; operators and auditors: everybody's"
    OWN_OR_OPERATED = "own; operators: everybody's"
    OPERATED = "operators: everybody's"


OBJECTS: Final[dict[tuple[str, str], Reach]] = {
    ("GET", "/dl/{name}"): Reach.ALL,
    ("GET", "/{path:path}"): Reach.ALL,
    ("DELETE", f"{V1}/sessions/{{session_id}}"): Reach.OWN,
    ("DELETE", f"{V1}/tokens/{{token_id}}"): Reach.OWN,
    ("DELETE", f"{V1}/join-tokens/{{token_id}}"): Reach.OWN,
    ("GET", f"{V1}/accounts/{{account_id}}"): Reach.ALL,
    ("POST", f"{V1}/accounts/{{account_id}}/credit"): Reach.OPERATED,
    ("POST", f"{V1}/accounts/{{account_id}}/link"): Reach.OPERATED,
    ("POST", f"{V1}/accounts/{{account_id}}/suspend"): Reach.OPERATED,
    ("POST", f"{V1}/accounts/{{account_id}}/resume"): Reach.OPERATED,
    ("GET", f"{V1}/operations/{{operation_id}}"): Reach.OWN_OR_OVERSEEN,
    ("GET", f"{V1}/hosts/{{host_id}}"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/stream"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/history"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/export"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/verification"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/standing"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/bandwidth"): Reach.ALL,
    ("GET", f"{V1}/hosts/{{host_id}}/facts"): Reach.ALL,
    ("POST", f"{V1}/hosts/{{host_id}}/verify"): Reach.OWN_OR_OPERATED,
    ("GET", f"{V1}/hosts/{{host_id}}/proof"): Reach.ALL,
    ("POST", f"{V1}/hosts/{{host_id}}/prove"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/measure"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/gpus/{{gpu_id}}/partition"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/drain"): Reach.OWN_OR_OPERATED,
    ("PUT", f"{V1}/hosts/{{host_id}}/default-image"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/activate"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/maintenance"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/quarantine"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/hosts/{{host_id}}/retire"): Reach.OWN_OR_OPERATED,
    ("GET", f"{V1}/gpus/{{gpu_id}}"): Reach.ALL,  # what names the card: its owner and who oversees
    ("GET", f"{V1}/accesses/{{access_id}}"): Reach.ALL,
    ("POST", f"{V1}/accesses/{{access_id}}/drain"): Reach.OPERATED,
    ("POST", f"{V1}/accesses/{{access_id}}/resume"): Reach.OPERATED,
    ("POST", f"{V1}/accesses/{{access_id}}/stop"): Reach.OPERATED,
    ("GET", f"{V1}/accesses/{{access_id}}/stop"): Reach.ALL,
    ("GET", f"{V1}/commands/{{command_id}}"): Reach.OWN_OR_OVERSEEN,
    ("PUT", f"{V1}/offers/{{tier:path}}"): Reach.ALL,  # the price of one's own hosts in that tier
    ("PUT", f"{V1}/templates/{{name}}"): Reach.ALL,  # one's own of that name
    ("GET", f"{V1}/templates/{{name}}"): Reach.OWN,
    ("DELETE", f"{V1}/templates/{{name}}"): Reach.OWN,
    ("GET", f"{V1}/volumes/{{name}}"): Reach.OWN,
    ("DELETE", f"{V1}/volumes/{{name}}"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/volumes/save"): Reach.OWN,
    ("GET", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Reach.OWN,
    ("PUT", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Reach.OWN,
    ("DELETE", f"{V1}/artefacts/{{owner_kind}}/{{owner_id}}/{{name:path}}"): Reach.OWN,
    ("GET", f"{V1}/clusters/{{cluster_id}}/checkpoints"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/checkpoints"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/checkpoints/restore"): Reach.OWN,
    ("GET", f"{V1}/clusters/{{cluster_id}}"): Reach.OWN_OR_OVERSEEN,
    ("DELETE", f"{V1}/clusters/{{cluster_id}}"): Reach.OWN_OR_OPERATED,
    ("GET", f"{V1}/clusters/{{cluster_id}}/box"): Reach.OWN,
    ("GET", f"{V1}/clusters/{{cluster_id}}/explain"): Reach.OWN_OR_OVERSEEN,
    ("GET", f"{V1}/clusters/{{cluster_id}}/stream"): Reach.OWN_OR_OVERSEEN,
    ("GET", f"{V1}/clusters/{{cluster_id}}/logs"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/exec"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/renew"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/stop"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/start"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/resize"): Reach.OWN,
    ("POST", f"{V1}/clusters/{{cluster_id}}/tunnels"): Reach.OWN,
    ("PUT", f"{V1}/clusters/{{cluster_id}}/files"): Reach.OWN,
    ("GET", f"{V1}/clusters/{{cluster_id}}/files"): Reach.OWN,
    ("GET", f"{V1}/jobs/{{job_id}}"): Reach.OWN_OR_OVERSEEN,
    ("GET", f"{V1}/jobs/{{job_id}}/impact"): Reach.OWN_OR_OVERSEEN,
    ("PUT", f"{V1}/jobs/{{job_id}}/files"): Reach.OWN,
    ("GET", f"{V1}/jobs/{{job_id}}/logs"): Reach.OWN,
    ("GET", f"{V1}/jobs/{{job_id}}/artefacts"): Reach.OWN,
    ("POST", f"{V1}/jobs/{{job_id}}/cancel"): Reach.OWN_OR_OPERATED,
    ("POST", f"{V1}/jobs/{{job_id}}/rerun"): Reach.OWN,
    ("GET", f"{V1}/receipts/{{receipt_id}}"): Reach.OWN_OR_OVERSEEN,
}

HEAD: Final = """# Who may ask what

Written from the code by `python -m windrow_master.api.permissions docs/permissions.md`; a test compares. Another test
calls every route as everybody. `yes`: with that role alone. `401` without a sign-in, `403` without the role, `404` for
an object that is not in reach. Lists hold what is in reach. A token has at most the roles of its account; the first
account has all of them. Hosts are the market's shop window: all who are signed in see them, and only their owner and
operators decide about them. Who asks `/events` for one subject is told what concerns themselves, or what is public.

"""


def document() -> str:
    """The page, as Markdown."""
    roles = sorted(Role)
    lines = [
        f"| route | permission | nobody | {' | '.join(roles)} | objects by id |",
        f"|---|---|---|{'---|' * len(roles)}---|",
    ]
    for (method, path), permission in sorted(RULES.items(), key=lambda rule: (rule[0][1], rule[0][0])):
        known = "yes" if permission is Permission.NOBODY else "401"
        cells = ["yes" if is_allowed(frozenset({role}), permission) else "403" for role in roles]
        reach = OBJECTS.get((method, path))
        lines.append(f"| `{method} {path}` | {permission} | {known} | {' | '.join(cells)} | {reach or ''} |")
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
