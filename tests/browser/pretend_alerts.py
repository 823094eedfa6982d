"""The pretend Master's alerts: those that are open, their rules and silences, the inbox, channels and deliveries."""

from typing import Any

from fastapi import Body, FastAPI, Response

from tests.browser.pretend_http import listed, problem
from tests.browser.pretend_world import Json, World, at
from windrow_master.api.alert_routes import BuiltInRuleOut
from windrow_master.watch.rules import RULES

HOST = "host_019a0000-0000-7000-9000-000000000000"
ME = "user/user_1"
NEVER: Json = dict.fromkeys(
    ("fired_at", "acknowledged_at", "acknowledged_by", "silenced_until", "resolved_at", "assignee")
)


def add_alert(world: World, rule: str, name: str, cause: str = HOST, **changed: Any) -> Json:
    """An alert that fires by a built-in rule, with its message, its note and its event. name: of what it is about."""
    known, number = RULES[rule], len(world.messages) + 1
    alert: Json = {"id": f"alert_{number}", "rule": rule, "rule_title": known.title, "cause": cause, "state": "firing"}
    alert |= {"cause_name": name}
    alert |= {"severity": known.severity.value, "title": f"{known.title}: {name}", "remedy": known.remedy}
    alert |= {"text": f"{name} has not been heard for 20 s.", "opened_at": at(600), "flaps": 0, "simulated": False}
    subject = {"id": cause, "name": name, "since": at(600), "cleared_at": None, "held": False, "rule": rule}
    subject |= {"rule_title": known.title}
    alert |= NEVER | {"fired_at": at(590), "subjects": [name], "subject_count": 1, "audiences": ["operators"]}
    alert |= {"affected": [subject], "notes": [_note("firing", alert["text"], "master")], "messages": []} | changed
    world.alerts.insert(0, alert)
    told = {key: alert[key] for key in MESSAGE}
    message = told | {"id": f"{alert['id']}.firing", "number": number, "alert_id": alert["id"], "kind": "firing"}
    world.messages.insert(0, message | {"at": at(590), "link": f"/alerts/{alert['id']}"})
    alert["messages"].append(world.messages[0])
    world.event("alert.firing", [alert["id"]], alert["title"], {"rule": rule, "severity": alert["severity"]})
    return alert


MESSAGE = ("rule", "severity", "title", "text", "remedy", "audiences", "subjects", "subject_count", "simulated")


def _note(kind: str, text: str = "", actor: str = ME) -> Json:
    return {"at": at(), "actor": actor, "kind": kind, "text": text or None}


WHOLE = {"audiences", "affected", "notes", "messages", "cause_name"}


def _short(alert: Json) -> Json:
    return {key: value for key, value in alert.items() if key not in WHOLE}


def alert_routes(app: FastAPI, world: World) -> None:
    """Alerts, the inbox, rules and silences."""

    @app.get("/api/v1/alerts")
    async def alerts(state: str = "open", cause: str = "") -> Json:
        def fits(alert: Json) -> bool:
            is_open = state == "open" and alert["state"] != "resolved"
            return cause in ("", alert["cause"]) and (is_open or state in ("all", alert["state"]))

        return listed([_short(one) for one in world.alerts if fits(one)])

    @app.get("/api/v1/alerts/{alert_id}")
    async def alert(alert_id: str) -> Any:
        return _found(world, alert_id)

    @app.post("/api/v1/alerts/{alert_id}/{verb}")
    async def act(alert_id: str, verb: str, body: Json | None = Body(None)) -> Any:
        found = _found(world, alert_id)
        if isinstance(found, Response):
            return found
        said = body or {}
        match verb:
            case "acknowledge":
                found |= {"state": "acknowledged", "acknowledged_at": at(), "acknowledged_by": ME}
            case "silence":
                found |= {"state": "silenced", "silenced_until": at(-said["duration_s"])}
            case "unsilence":
                found |= {"state": "firing", "silenced_until": None}
            case "assign":
                found |= {"assignee": said["assignee"] or None}
        done = {"acknowledge": "acknowledged", "silence": "silenced", "unsilence": "unsilenced", "assign": "assigned"}
        found["notes"].append(_note(done.get(verb, verb), said.get("text") or said.get("assignee") or ""))
        return found

    @app.get("/api/v1/inbox")
    async def inbox() -> Json:
        unread = sum(one["number"] > world.read_number for one in world.messages)
        return listed(world.messages) | {"unread": unread, "read_number": world.read_number}

    @app.post("/api/v1/inbox/read")
    async def read(body: Json = Body()) -> Json:
        world.read_number = body["number"]
        return {"unread": sum(one["number"] > world.read_number for one in world.messages)}

    _rule_routes(app, world)
    _silence_routes(app, world)


def _found(world: World, alert_id: str) -> Any:
    found = next((one for one in world.alerts if one["id"] == alert_id), None)
    return found or problem(404, "not_found", "Not found", "There is no such alert, or it is not yours.", alert_id)


def _rule_routes(app: FastAPI, world: World) -> None:
    def made(rule_id: str, body: Json) -> Json:
        rest: Json = {
            "event": None,
            "metric": None,
            "scope": {},
            "owner": "operators",
            "created_at": at(),
            "created_by": ME,
        }
        return rest | body | {"id": rule_id}

    @app.get("/api/v1/alert-rules")
    async def rules() -> Json:
        built_in = [BuiltInRuleOut.of(one) for one in RULES.values()]
        return listed(world.alert_rules) | {"built_in": built_in}

    @app.post("/api/v1/alert-rules", status_code=201)
    async def add(body: Json = Body()) -> Json:
        world.alert_rules.append(made(f"alertrule_{len(world.alert_rules)}", body))
        return world.alert_rules[-1]

    @app.post("/api/v1/alert-rules/preview")
    async def preview(body: Json = Body()) -> Any:
        if "zone" in (body.get("scope") or {}):
            said = "scope: There is no label 'zone' here. There are: host, gpu, tier, region."
            return problem(422, "invalid_input", "Not valid", said, "scope")
        spans = [(86_400, 82_800), (3_600, None)] if body["threshold"] < 90 else []
        firings = [
            {"name": "sim-000 GPU 0", "at": at(begin), "until": None if end is None else at(end)}
            for begin, end in spans
        ]
        return {"count": len(firings), "firings": firings, "complete": True}

    @app.put("/api/v1/alert-rules/{rule_id}")
    async def change(rule_id: str, body: Json = Body()) -> Json:
        world.alert_rules = [made(rule_id, body) if one["id"] == rule_id else one for one in world.alert_rules]
        return made(rule_id, body)

    @app.delete("/api/v1/alert-rules/{rule_id}")
    async def remove(rule_id: str) -> Response:
        world.alert_rules = [one for one in world.alert_rules if one["id"] != rule_id]
        return Response(status_code=204)


def _silence_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/alert-silences")
    async def silences() -> Json:
        return listed(world.silences)

    @app.post("/api/v1/alert-silences", status_code=201)
    async def add(body: Json = Body()) -> Json:
        row = {"id": f"silence_{len(world.silences)}", "owner": "operators", "starts_at": at(), "created_at": at()}
        world.silences.append(row | body | {"created_by": ME})
        return world.silences[-1]

    @app.delete("/api/v1/alert-silences/{silence_id}")
    async def end(silence_id: str) -> Response:
        world.silences = [one for one in world.silences if one["id"] != silence_id]
        return Response(status_code=204)

    _maintenance_routes(app, world)


def _maintenance_routes(app: FastAPI, world: World) -> None:
    @app.get("/api/v1/maintenance-windows")
    async def windows(host: str = "") -> Json:
        return listed([one for one in world.windows if host in ("", *one["hosts"])])

    @app.post("/api/v1/maintenance-windows", status_code=201)
    async def declare(body: Json = Body()) -> Json:
        starts = body["starts_at"]
        row: Json = {"id": f"maintenance_{len(world.windows)}", "owner": "operators"}
        row |= {"hosts": body["hosts"], "names": body["hosts"], "state": "planned" if starts else "running"}
        row |= {"starts_at": starts or at(), "ends_at": body["ends_at"], "reason": body["reason"] or None}
        world.windows.append(row)
        return row

    @app.post("/api/v1/maintenance-windows/plan")
    async def plan(body: Json = Body()) -> Any:
        if "nothere" in body["hosts"]:
            said = "hosts: No host that you may decide about is named nothere. List hosts: windrow host ls"
            return problem(404, "not_found", "Not found", said, "hosts")
        return {"hosts": len(body["hosts"]), "leases": 1, "open_ended": 0, "earliest_start": at(-3600)}

    @app.delete("/api/v1/maintenance-windows/{window_id}")
    async def over(window_id: str) -> Response:
        world.windows = [one for one in world.windows if one["id"] != window_id]
        return Response(status_code=204)


def _delivery(world: World, channel: Json, kind: str = "test") -> Json:
    number = len(world.deliveries)
    row = {"id": f"delivery_{number}", "channel_id": channel["id"], "message_id": f"alert_1.{kind}", "kind": kind}
    row |= {"alert_id": "alert_1", "severity": "ticket", "title": f"A {kind} message", "object": f"{kind}/alert_1"}
    row |= {"state": "sent", "tries": 1, "last_answer": "200 OK", "due_at": None, "first_at": at(), "done_at": at()}
    world.deliveries.insert(0, row)
    return row


def add_delivery(world: World, channel: Json, **changed: Any) -> Json:
    """A message that went, or did not go, to a channel."""
    row = _delivery(world, channel, "firing")
    row |= changed
    return row


def channel_routes(app: FastAPI, world: World) -> None:
    """Channels, deliveries and the mail that needs no channel."""

    def find(channel_id: str) -> Json:
        return next(one for one in world.channels if one["id"] == channel_id)

    @app.get("/api/v1/channels")
    async def channels() -> Json:
        return listed(world.channels)

    @app.post("/api/v1/channels", status_code=201)
    async def add(body: Json = Body()) -> Json:
        row = {"id": f"channel_{len(world.channels)}", "owner": "account_1", "created_at": at(), "created_by": ME}
        row |= body | {"rotated_at": None}
        if body["kind"] == "webhook":
            row["target"] = body["target"].split("/")[2]
        world.channels.append(row)
        return {"channel": row, "secret": "whsec_pretend" if body["kind"] == "webhook" else None}

    @app.put("/api/v1/channels/{channel_id}")
    async def change(channel_id: str, body: Json = Body()) -> Json:
        row = find(channel_id)
        row |= body
        return row

    @app.delete("/api/v1/channels/{channel_id}")
    async def remove(channel_id: str) -> Response:
        world.channels = [one for one in world.channels if one["id"] != channel_id]
        return Response(status_code=204)

    @app.post("/api/v1/channels/{channel_id}/test")
    async def test(channel_id: str) -> Json:
        return _delivery(world, find(channel_id))

    @app.post("/api/v1/channels/{channel_id}/rotate")
    async def rotate(channel_id: str) -> Json:
        row = find(channel_id)
        row["rotated_at"] = at()
        return {"channel": row, "secret": "whsec_another"}

    @app.get("/api/v1/deliveries")
    async def deliveries(alert: str = "", state: str = "") -> Json:
        return listed(
            [one for one in world.deliveries if alert in ("", one["alert_id"]) and state in ("", one["state"])]
        )

    @app.post("/api/v1/deliveries/{delivery_id}/again")
    async def again(delivery_id: str) -> Json:
        row = next(one for one in world.deliveries if one["id"] == delivery_id)
        row |= {"state": "waiting", "done_at": None, "due_at": at()}
        return row

    @app.get("/api/v1/user/alert-mail")
    async def mail() -> Json:
        return {"level": world.alert_mail}

    @app.put("/api/v1/user/alert-mail")
    async def set_mail(body: Json = Body()) -> Json:
        world.alert_mail = body["level"]
        return {"level": world.alert_mail}
