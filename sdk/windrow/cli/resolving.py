"""Finds what a name or the start of an id on the command line means, for every kind of thing alike.

Names are chosen by whoever makes a thing, ids by the Master. A text that is a name and the start of another's id is
therefore refused, and of what accounts own, a name means one's own: operators see everybody's.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from windrow.cli.cluster_text import ENDED
from windrow.cli.output import say
from windrow.client import Client
from windrow.errors import InvalidInput, NotFound, WindrowClientError

Item = dict[str, Any]

_WHOLE: Final = re.compile(r"[a-z]{2,12}_[0-9a-f]{32}")
_CARD: Final = re.compile(r"((?:GPU|MIG|MPS)-[0-9a-f]{8})-[0-9a-f-]+")
_IN_TEXT: Final = re.compile(r"\b(?:[a-z]{2,12}_[0-9a-f]{32}|(?:GPU|MIG|MPS)-[0-9a-f]{8}-[0-9a-f-]{27})\b")
_PART: Final = re.compile(r"[0-9a-f]{4}[0-9a-f-]*", re.IGNORECASE)
_COPY: Final = re.compile(r"\[\d+\]$")
SHORT: Final = 8
RANDOM: Final = 16
"""Characters at the end of an id that are random: those before begin with the time, alike in all of a day."""
CARD_LENGTH: Final = 40
"""Of `GPU-` and a UUID."""
CANDIDATES_MAX: Final = 8
JOB_ENDED: Final = ("Succeeded", "Failed", "Cancelled", "Lost")


def short(whole: str) -> str:
    """The part of an id that a screen shows: the first characters that are random; of a GPU, the first of its UUID."""
    if _WHOLE.fullmatch(whole):
        return whole[-RANDOM:][:SHORT]
    card = _CARD.fullmatch(whole)
    return card[1] if card else whole


def named(text: str, names: Mapping[str, str] | None) -> str:
    """A text with names in the place of ids."""
    for one in sorted(names or {}, key=len, reverse=True):
        text = text.replace(one, (names or {})[one])
    return text


def shortened(text: Any) -> Any:
    """A text with its ids as lists show them; absent stays absent."""
    return text and _IN_TEXT.sub(lambda found: short(found[0]), str(text))


def called(api: Client, path: str, whole: str) -> str:
    """The name of what is read at `path`/id; of what has none, or is not for this token to know, the short id."""
    with suppress(WindrowClientError):
        return str(api.get(f"{path}/{whole}").get("name") or short(whole))
    return short(whole)


def actor_name(actor: str, names: Mapping[str, str] | None) -> str:
    """Who did something: a name; without one the kind and the id."""
    kind, _, one = actor.partition("/")
    return (names or {}).get(one) or (f"{kind} {one}" if one else actor)


def job_label(job: Item) -> str:
    """The name of a job as lists show it: of one of an array with its index, train[3]."""
    is_copy = (job.get("request") or {}).get("array_size")
    return f"{job.get('name')}[{job.get('array_index')}]" if is_copy else str(job.get("name"))


class Kind(NamedTuple):
    """A kind of thing that is named on the command line. prefix: of its ids. read: all of them, or those that the
    Master finds by a name. names: of one. has_ended: true of one that gives way to another of its name. path: of those
    that accounts own, each by its `account_id`.
    """

    noun: str
    prefix: str
    read: Callable[[Client, str | None], Iterator[Item]]
    names: Callable[[Item], Sequence[Any]] = lambda item: (item.get("name"),)
    key: str = "id"
    has_ended: Callable[[Item], bool] = lambda item: False
    path: str = ""


def _hosts(api: Client, name: str | None) -> Iterator[Item]:
    yield from api.items("/hosts", q=name)
    yield from api.items("/hosts", q=name, state="retired")


def _relay_names(item: Item) -> tuple[Any, ...]:
    host = str(item.get("address") or "").rpartition(":")[0]
    return item.get("name"), item.get("stop_name"), host, item.get("address")


MEMBERS: Final = Kind(
    "member",
    "user_",
    lambda api, name: api.items("/members"),
    names=lambda item: (item.get("name"), item.get("address")),
)
USERS: Final = Kind(
    "user",
    "user_",
    lambda api, name: api.items("/users"),
    names=lambda item: (item.get("name"), item.get("address")),
)
INVITATIONS: Final = Kind(
    "invitation", "invitation_", lambda api, name: api.items("/invitations"), names=lambda item: (item.get("address"),)
)
SHARES: Final = Kind("share", "share_", lambda api, _: api.items("/shares"), names=lambda item: ())
SERVICE_ACCOUNTS: Final = Kind("service-account", "service_", lambda api, name: api.items("/service-accounts"))
CLUSTERS: Final = Kind(
    "cluster",
    "cluster_",
    lambda api, name: api.items("/clusters", name=name),
    has_ended=lambda item: item.get("phase") in ENDED,
    path="/clusters",
)
JOBS: Final = Kind(
    "job",
    "job_",
    lambda api, name: api.items("/jobs", name=name and _COPY.sub("", name)),
    names=lambda item: (item.get("name"), job_label(item)),
    path="/jobs",
)
LIVING_JOBS: Final = JOBS._replace(has_ended=lambda item: item.get("state") in JOB_ENDED)
"""For verbs that end or move jobs: a name means one that has ended only if none goes on."""
HOSTS: Final = Kind("host", "host_", _hosts, has_ended=lambda item: item.get("admin_state") == "retired")
GPUS: Final = Kind("gpu", "GPU-", lambda api, _: iter(api.get("/gpus")["items"]), key="uuid", names=lambda item: ())
RELAYS: Final = Kind("access", "access_", lambda api, _: api.items("/accesses"), names=_relay_names)
TOKENS: Final = Kind("token", "token_", lambda api, _: api.items("/tokens"))
CHANNELS: Final = Kind("channel", "channel_", lambda api, _: api.items("/channels"))
DELIVERIES: Final = Kind("delivery", "delivery_", lambda api, _: api.items("/deliveries"), names=lambda item: ())
COMMANDS: Final = Kind("command", "command_", lambda api, _: api.items("/commands"), names=lambda item: ())
PURCHASES: Final = Kind("purchase", "purchase_", lambda api, _: api.items("/purchases"), names=lambda item: ())
RECEIPTS: Final = Kind("receipt", "receipt_", lambda api, _: api.items("/receipts"), names=lambda item: ())


def found(api: Client, kind: Kind, text: str, *, ended: bool = True, newest: bool = False, shows: bool = False) -> str:
    """The id of what this text means: an id, a name, or the start of an id or of its random part. ended: a name may
    mean one that has ended, if none goes on. newest: of several of a name, the newest. shows: for a verb that only
    shows it, where another account's name does, too, if there is none of one's own; else that is named by its id, and
    it is said whose it is. Raises NotFound, InvalidInput, ApiProblem.
    """
    if _is_id(kind, text):
        if kind.path and not shows and _WHOLE.fullmatch(text):
            _tell_owner(api, kind, text)
        return text
    called = [one for one in kind.read(api, text) if text in kind.names(one)]
    is_part = _PART.fullmatch(text.removeprefix(kind.prefix)) is not None
    started = [one for one in kind.read(api, None) if _starts(one, kind, text)] if is_part else []
    me = api.get("/me")["account"]["id"] if kind.path and (called or started) else None
    own = [one for one in called if _is_own(one, me)]
    named = _meant(kind, own, ended, newest)
    if shows and not named and not any(_is_own(one, me) for one in started):
        named = _meant(kind, called, ended, newest)
    if not named and not started:
        raise NotFound(_unknown(kind, text, [one for one in called if not _is_own(one, me)]))
    one = _one(kind, text, [*named, *started])
    if not _is_own(one, me):
        _say_owner(kind, one)
    return str(one[kind.key])


def gpu(api: Client, text: str) -> str:
    """The UUID of a GPU: as written, by the start of its UUID, or as HOST/INDEX. Raises as `found` does."""
    place, slash, index = text.rpartition("/")
    if not slash or not index.isascii() or not index.isdecimal():
        return found(api, GPUS, text)
    of = api.get(f"/hosts/{found(api, HOSTS, place)}")
    for one in of.get("gpus") or ():
        if one["index"] == int(index):
            return str(one["uuid"])
    raise NotFound(f"{of['name']} has no GPU {index}. List its GPUs: windrow host show {place}")


def host(api: Client, text: str | None) -> str | None:
    """The id of the host that this text means; of none or an empty one, the same. Raises as `found` does."""
    return found(api, HOSTS, text) if text else text


def subject(api: Client, text: str) -> str:
    """The id of the host, GPU, cluster or job that this text means; of nothing among them, the text: records are also
    about tokens and accounts. Raises InvalidInput where it may mean several, ApiProblem."""
    if _WHOLE.fullmatch(text):
        return text
    meant = []
    for kind in (HOSTS, CLUSTERS, JOBS, GPUS):
        with suppress(NotFound):
            meant.append(found(api, kind, text, shows=True))
    if len(meant) > 1:
        raise InvalidInput(f"{text!r} may mean {len(meant)} of them: {', '.join(meant)}. Write an id.")
    return meant[0] if meant else text


def work(api: Client, text: str, *, shows: bool = False) -> tuple[Kind, str]:
    """The kind and the id of the cluster or the job that this text means: a cluster that goes on, else the newest job,
    else a cluster that has ended. Raises as `found` does."""
    if text.startswith(JOBS.prefix):
        return JOBS, found(api, JOBS, text, shows=shows)
    if text.startswith(CLUSTERS.prefix):
        return CLUSTERS, found(api, CLUSTERS, text, shows=shows)
    for kind, ended in ((CLUSTERS, False), (JOBS, True), (CLUSTERS, True)):
        with suppress(NotFound):
            return kind, found(api, kind, text, ended=ended, newest=kind is JOBS, shows=shows)
    raise NotFound(f"There is no machine, cluster or job {text!r}. List yours: windrow ps --all")


def _is_id(kind: Kind, text: str) -> bool:
    """True if it has the form of a whole id, or can be no start of one: the Master answers for it."""
    if not text.startswith(kind.prefix):
        return False
    is_whole = _WHOLE.fullmatch(text.replace("-", "")) or (_CARD.fullmatch(text) and len(text) >= CARD_LENGTH)
    return bool(is_whole) or not _PART.match(text.removeprefix(kind.prefix))


def _is_own(one: Item, me: str | None) -> bool:
    """True also of what no account owns."""
    return me is None or one.get("account_id") == me


def _meant(kind: Kind, called: Sequence[Item], ended: bool, newest: bool) -> list[Item]:
    """Returns those of a name that go on; of these, if asked, and else of those that ended, each account's newest."""
    going = [one for one in called if not kind.has_ended(one)]
    if going and not newest:
        return going
    latest: dict[Any, Item] = {}
    for one in sorted(going or (called if ended else ()), key=lambda one: str(one.get("created_at")), reverse=True):
        latest.setdefault(one.get("account_id"), one)
    return list(latest.values())


def _unknown(kind: Kind, text: str, others: Sequence[Item]) -> str:
    if not others:
        return f"There is no {kind.noun} {text!r}. List them: windrow {kind.noun} ls"
    shown = ", ".join(f"{one[kind.key]} of {one.get('account_id')}" for one in others[:CANDIDATES_MAX])
    return f"You have no {kind.noun} {text!r}. Name another account's by its id: {shown}"


def _tell_owner(api: Client, kind: Kind, whole: str) -> None:
    """Say whose it is, to an operator, who alone may do something to others'."""
    me = api.get("/me")
    if "operator" in me["roles"]:
        one = api.get(f"{kind.path}/{whole}")
        if not _is_own(one, me["account"]["id"]):
            _say_owner(kind, one)


def _say_owner(kind: Kind, one: Item) -> None:
    say(f"{one[kind.key]} ({one.get('name')}) belongs to another account: {one.get('account_id')}")


def _starts(item: Item, kind: Kind, text: str) -> bool:
    whole, start = str(item[kind.key]).casefold(), text.casefold()
    bare = whole.removeprefix(kind.prefix.casefold())
    return whole.startswith(start) or bare.startswith(start) or whole[-RANDOM:].startswith(start)


def _one(kind: Kind, text: str, items: Sequence[Item]) -> Item:
    ids = {str(one[kind.key]): one for one in items}
    if len(ids) == 1:
        return items[0]
    is_short = any(short(whole) == text.casefold() for whole in ids)  # and so says nothing
    shown = [f"{whole if is_short else short(whole)} {_label(kind, one)}".strip() for whole, one in ids.items()]
    more = f", and {len(shown) - CANDIDATES_MAX} more" if len(shown) > CANDIDATES_MAX else ""
    raise InvalidInput(
        f"{text!r} may mean {len(ids)} of them: {', '.join(shown[:CANDIDATES_MAX])}{more}. Write an id"
        f"{', whole' if is_short else ''}."
    )


def _label(kind: Kind, one: Item) -> str:
    name = next((name for name in kind.names(one) if name), None)
    return f"({name})" if name else ""


def last_cluster(job: Mapping[str, Any], *, goes_on: bool = False) -> list[str]:
    """Returns the id of the cluster of a job's last attempt; none where there is none, or it is a run at a service.
    goes_on: none either where the attempt has ended."""
    last = job["attempts"][-1:]
    return [one["cluster_id"] for one in last if one["cluster_id"] and not (goes_on and one["ended_at"])]


def runs_elsewhere(job: Mapping[str, Any]) -> bool:
    """Returns whether a job's last attempt goes on as a run at a service, which has no cluster."""
    return any(not one["cluster_id"] and not one["ended_at"] for one in job["attempts"][-1:])
