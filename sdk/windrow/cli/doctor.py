"""`windrow doctor`: is there a Master, does it know us, are there hosts; with the next step for whatever is missing."""

from typing import Any, Final

import typer

from windrow.cli.context import AsJson, Options
from windrow.cli.exits import EXIT_FAILURE
from windrow.cli.output import facts, print_json
from windrow.client import Client
from windrow.conditions import CONDITIONS
from windrow.config import find
from windrow.errors import WindrowClientError

Check = tuple[str, bool, str]
SAID: Final = frozenset(CONDITIONS) | {"host.lost", "host.quarantined", "relay.down", "host.maintenance"}
"""Rules of alerts of which the list of what needs attention says the same, as it is now; and what is planned."""
RENTED: Final = ("balance.", "budget.", "cluster.", "job.", "lease.", "volume.")
"""The beginnings of rules about what is rented: the market is well all the same."""


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
            if "operator" in me["roles"]:
                checks += _master(api.get("/operators/health"))
            checks += [_need(group) for group in api.get("/overview/attention")["items"]]
            checks += [_alert(one) for one in api.items("/alerts", state="firing") if _is_unsaid(one["rule"])]
            hosts = list(api.items("/hosts"))
            usable = () if hosts or "renter" not in me["roles"] else api.items("/me/backends")
            checks.append(_hosts(hosts, [one["name"] for one in usable]))
    except WindrowClientError as error:
        checks.append(("master", False, str(error)))
    return checks


def _master(health: Any) -> list[Check]:
    """What only the Master's health says: its problems, and the relays that are connected."""
    found = [("master", False, str(problem)) for problem in health["master"]["problems"]]
    names = ", ".join(one.get("name") or f"relay {one['region']}" for one in health["accesses"])
    return [*found, ("access", True, names)] if names else found


def _need(group: Any) -> Check:
    """One kind of trouble, by its code where it has one: what has it, what is known of it, what to do."""
    affected = group["affected"]
    places = [one["name"] + (f" GPU {one['gpu']}" if one["gpu"] is not None else "") for one in affected]
    more = group["count"] - len(affected)
    where = ", ".join(dict.fromkeys(places)) + (f" and {more} more" if more > 0 else "")
    said = " ".join(dict.fromkeys(f"{one['detail'].rstrip('.')}." for one in affected if one["detail"]))
    name = group["kind"].partition(":")[2] or group["title"]
    return name, False, f"{where}: {said} {group['remedy']}".replace("  ", " ").strip()


def _is_unsaid(rule: str) -> bool:
    return rule not in SAID and not rule.startswith((*RENTED, "alertrule_"))


def _alert(one: Any) -> Check:
    return one["title"], False, f"{one['text'].rstrip('.')}. {one['remedy'] or ''}".strip()


def _hosts(hosts: list[Any], backends: list[str]) -> Check:
    if not hosts and backends:
        return "hosts", True, f"None here; jobs with --backend run at {', '.join(backends)}"
    if not hosts:
        return "hosts", False, "None: `windrow token add --join`, then its line on a host."
    online = sum(host["link_state"] == "online" for host in hosts)
    return "hosts", online > 0, f"{online} of {len(hosts)} online"
