"""`windrow doctor`: is there a Master, does it know us, are there hosts; with the next step for whatever is missing."""

from typing import Any, Final

import typer

from windrow.cli.context import AsJson, Options
from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.front_text import TROUBLED
from windrow.cli.output import facts, print_json
from windrow.client import Client
from windrow.config import find
from windrow.errors import WindrowClientError

Check = tuple[str, bool, str]
SHOWN_MAX: Final = 8
"""Hosts told one by one: more would hide the other checks."""


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check this machine's way to its Master, step by step."""
    options: Options = context.find_root().obj or Options()
    checks = examine(options)
    if as_json:
        print_json([{"check": name, "ok": ok, "detail": detail} for name, ok, detail in checks])
    else:
        facts([(f"{'ok  ' if ok else 'FAIL'} {name}", detail) for name, ok, detail in checks])
    if not all(ok for _, ok, _ in checks):
        raise typer.Exit(EXIT_FAILURE)


def examine(options: Options) -> list[Check]:
    """The checks in order; stops at the first that fails, since the rest would only repeat it."""
    checks: list[Check] = []
    try:
        config = find(options.url, options.token)
        checks.append(("configuration", True, f"{config.url} from {config.source}"))
        with Client(config) as api:
            me = api.get("/me")
            checks.append(("account", True, f"{me['account']['name']} ({', '.join(me['roles'])})"))
            health = api.get("/operators/health") if "operator" in me["roles"] else {"accesses": None}
            checks += _troubles(health)
            if health["accesses"] is not None:
                names = ", ".join(a.get("name") or f"relay {a['region']}" for a in health["accesses"])
                checks.append(
                    ("access", bool(health["accesses"]), names or "No relay is connected: start windrow-access.")
                )
            checks += _hosts(me, list(api.items("/hosts")))
    except WindrowClientError as error:
        checks.append(("master", False, str(error)))
    return checks


def _hosts(me: Any, hosts: list[Any]) -> list[Check]:
    """Returns how many hosts are online, and each that needs the one who asks: an operator looks after all, a provider
    after their own."""
    if not hosts:
        return [("hosts", False, "None: `windrow token add --join`, then its line on a host.")]
    online = sum(host["link_state"] == "online" for host in hosts)
    own, is_operator = me["account"]["id"], "operator" in me["roles"]
    mine = [host for host in hosts if is_operator or host.get("owner_account") == own]
    bad = [host for host in mine if host["headline"] in TROUBLED]
    found = [("hosts", online > 0, f"{online} of {len(hosts)} online")]
    found += [(f"host {host['name']}", False, _trouble(host)) for host in bad[:SHOWN_MAX]]
    if len(bad) > SHOWN_MAX:
        found.append(("hosts", False, f"{len(bad) - SHOWN_MAX} more need somebody: `windrow host ls`."))
    return found


def _trouble(host: Any) -> str:
    said = f"{host['headline']}: {host.get('headline_reason') or ''}".rstrip(": .")
    return f"{said}. {host.get('headline_remedy') or ''}".rstrip()


def _troubles(health: Any) -> list[Check]:
    """Returns the troubles that the Master itself reports, with the way out."""
    master = health.get("master") or {"problems": [], "conditions": []}
    found = [("master", False, str(problem)) for problem in master["problems"]]
    return found + [
        (str(one.get("title") or one["code"]), False, f"{one['detail']} {one.get('remedy', '')}".strip())
        for one in master["conditions"]
    ]
