"""The HTTP client of a renter: one method per thing the API does, problems as exceptions, streams as iterators.

Values are the API's own JSON objects (docs/openapi.json), untouched.
"""

import base64
import hashlib
import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import IO, Any
from urllib.parse import quote

from windrow.config import DEADLINE_S
from windrow.errors import ApiProblem, InvalidInput, MasterUnreachable, WaitTimedOut, WindrowClientError
from windrow.soon import SOON_S, patiently
from windrow.transport import FILES_S, TAR, Archive, Json, Transport

LOOK_S = 0.25
"""Between two looks at a cluster where its stream does not tell."""
JOB_LOOK_S = 1.0
"""Between two looks at a job: the Master itself looks at it every second."""
BEGIN_S = 900.0
"""For work to begin whose log is followed: pulling a large image takes minutes, and its host gives up after ten."""
BEFORE_WORK = ("Requested", "Queued", "Placing", "Creating")
"""The phases of a cluster in which some or all of its work has not begun."""
SILENT_S = 5.0
"""A cluster's stream that says nothing for so long is asked anew: less than between two comments, so deadlines hold."""


class Client(Transport):
    """A connection to one Master. Use as a context manager, or close it."""

    def redeem_link(self, secret: str) -> Json:
        """The account that a sign-in link opens, with a token of it; works once."""
        answer: Json = self.request("POST", "/sign-in", body={"secret": secret})
        return answer

    def own(self, path: str, name: str) -> Iterator[Json]:
        """The clusters or jobs of exactly this name that are the account's own, newest first. Operators see others' in
        the same list."""
        account = None
        for one in self.items(path, name=name):
            if one.get("name") == name:
                account = account or self.get("/me")["account"]["id"]
                if one["account_id"] == account:
                    yield one

    def whole_array(self, name: str, job_id: str) -> list[str]:
        """The ids of all jobs of the array that this job, found by that name, is of, each as it was run last; its own
        if it is of none."""
        named = [one for one in self.items("/jobs", name=name) if one["name"] == name]
        group = next((one.get("group_id") for one in named if one["id"] == job_id), None)
        newest = dict[Any, str]()
        for one in named if group else ():
            if one["group_id"] == group:
                newest.setdefault(one["array_index"], str(one["id"]))
        return list(newest.values()) or [job_id]

    # --- clusters ------------------------------------------------------------------------------

    def plan(self, request: Json) -> Json:
        """Returns the price and the place of this cluster, or why it would not fit."""
        answer: Json = self.request("POST", "/clusters/plan", body=request)
        return answer

    def create_cluster(
        self, request: Json, patience_s: float = SOON_S, tell: Callable[[str], object] | None = None
    ) -> Json:
        """Ask for a cluster; returns the cluster as it is now (it goes on by itself).

        Where it only lacks a card that is back in a moment, it is asked for again for `patience_s` seconds; `tell` is
        given that reason.
        """
        answer: Json = patiently(lambda: self.request("POST", "/clusters", body=request), patience_s, tell)
        cluster: Json = answer["cluster"]
        return cluster

    def cluster(self, cluster_id: str) -> Json:
        """One cluster."""
        answer: Json = self.get(f"/clusters/{cluster_id}")
        return answer

    def usage(self, cluster_id: str) -> list[Json]:
        """The resources that each member of a cluster uses now, by rank; those without figures are left out."""
        members: list[Json] = self.get(f"/clusters/{cluster_id}/usage")["members"]
        return members

    def stop_cluster(self, cluster_id: str) -> Json:
        """End its work, and keep it to be started again; returns the cluster as it is now. Safe to repeat."""
        cluster: Json = self.request("POST", f"/clusters/{cluster_id}/stop")["cluster"]
        return cluster

    def start_cluster(
        self,
        cluster_id: str,
        request: Json | None = None,
        patience_s: float = SOON_S,
        tell: Callable[[str], object] | None = None,
    ) -> Json:
        """Start what was stopped; the rest is as for `create_cluster`. request: max_price_per_hour, registry_login."""
        path = f"/clusters/{cluster_id}/start"
        answer: Json = patiently(lambda: self.request("POST", path, body=request or {}), patience_s, tell)
        cluster: Json = answer["cluster"]
        return cluster

    def delete_cluster(self, cluster_id: str, *, keep_results: bool = False) -> Json:
        """Ask for its end; safe to repeat. keep_results: its log and what it changed can be fetched afterwards."""
        more = {"keep_results": "true"} if keep_results else None
        answer: Json = self.request("DELETE", f"/clusters/{cluster_id}", params=more)
        return answer

    def wait_cluster(
        self,
        cluster_id: str,
        until: Callable[[Json], bool],
        timeout_s: float,
        on_change: Callable[[Json], None] | None = None,
    ) -> Json:
        """Wait until `until(cluster)` holds; raises WaitTimedOut after `timeout_s` seconds."""
        ends = time.monotonic() + timeout_s
        seen = None
        with closing(self._followed(cluster_id, ends)) as states:
            for cluster in states:
                if on_change is not None and cluster["version"] != seen:
                    seen = cluster["version"]
                    on_change(cluster)
                if until(cluster):
                    return cluster
                if time.monotonic() > ends:
                    break
        raise WaitTimedOut(f"Machine {cluster_id} is still {cluster['phase']} after {timeout_s:.0f} s.")

    def _followed(self, cluster_id: str, ends: float) -> Generator[Json]:
        """The cluster as it is and after each change; where its stream breaks or is silent, by looking again."""
        while True:
            yield self.cluster(cluster_id)
            read_s = min(SILENT_S, max(ends - time.monotonic(), LOOK_S))
            try:
                for _, name, state in self.events(f"/clusters/{cluster_id}/stream", read_s=read_s):
                    if name == "cluster":
                        yield state
            except MasterUnreachable:
                pass  # the next look says so, if it is more than this stream
            time.sleep(LOOK_S)

    def whole_log(self, cluster_id: str, *, offset: int = 0, rank: int = 0) -> Iterator[bytes]:
        """All of the log as it is now, from byte `offset`; one answer has not more than some MiB of it."""
        before = -1
        while offset > before:
            before = offset
            for data in self.logs(cluster_id, offset=offset, rank=rank):
                offset += len(data)
                yield data

    def logs(self, cluster_id: str, *, follow: bool = False, offset: int = 0, rank: int = 0) -> Iterator[bytes]:
        """The log from byte `offset` on. follow: waits until the work begins, then gives the log as it is written until
        the work ends; else as it is now."""
        if follow:
            self.wait_cluster(cluster_id, lambda cluster: _has_begun(cluster, rank), BEGIN_S)
        params = {"follow": "true" if follow else "false", "offset": offset, **_member(rank)}
        with self._stream(
            "GET", f"/clusters/{cluster_id}/logs", params=params, read_s=None if follow else DEADLINE_S
        ) as answer:
            yield from answer.iter_bytes()

    def execute(self, cluster_id: str, argv: list[str], *, rank: int = 0) -> Iterator[tuple[int, bytes] | int]:
        """Run one more command inside; yields (1 stdout | 2 stderr, bytes) and, last, its exit code."""
        with self._stream(
            "POST", f"/clusters/{cluster_id}/exec", params=_member(rank), json={"argv": argv}, read_s=None
        ) as answer:
            for line in answer.iter_lines():
                if not line.strip():
                    continue
                part = json.loads(line)
                if "error" in part:
                    raise ApiProblem(409, part["error"])
                if "exit_code" in part:
                    yield int(part["exit_code"])
                    return
                yield int(part["stream"]), base64.b64decode(part["data"])

    def box(self, cluster_id: str) -> Json:
        """How a box of one's own is entered: `ssh_port`, `notebook_port`, `notebook_token`; None: not this way."""
        answer: Json = self.get(f"/clusters/{cluster_id}/box")
        return answer

    def open_tunnel(self, cluster_id: str, port: int, wish: Json | None = None, *, rank: int = 0) -> Json:
        """Have its host open a tunnel to a TCP port of it; returns where and with what to connect, within a minute.
        wish: by which Access, as `Nearest` says it."""
        path, asked = f"/clusters/{cluster_id}/tunnels", {"port": port, **(wish or {})}
        answer: Json = self.request("POST", path, body=asked, params=_member(rank))
        return answer

    def put_files(self, cluster_id: str, tar: IO[bytes], *, commit: bool) -> Json:
        """Send a tar stream into the working folder; `commit` starts a workload that waits for its files."""
        return self._put(f"/clusters/{cluster_id}/files", tar, {"commit": "true" if commit else "false"}, TAR)

    def files(self, cluster_id: str, *, changed: bool, rank: int = 0) -> Archive:
        """The working folder of a cluster, to be brought here."""
        params = {"changed": "true" if changed else "false", **_member(rank)}
        return Archive(self, f"/clusters/{cluster_id}/files", params)

    def renew_cluster(self, cluster_id: str) -> None:
        """Say that the client of a cluster still lives, where it was created with `client_lease_s`."""
        self.request("POST", f"/clusters/{cluster_id}/renew")

    def artefacts(self, owner_kind: str | None = None, owner_id: str | None = None) -> Iterator[Json]:
        """The account's artefacts, the latest first; of one owner, such as ("cluster", its id), where it is named."""
        return self.items("/artefacts", owner_kind=owner_kind, owner_id=owner_id)

    def put_artefact(
        self, owner_kind: str, owner_id: str, name: str, content: IO[bytes], *, keep_days: int | None = None
    ) -> Json:
        """Store what `content` reads under a name, in place of an older one. keep_days: 0: until it is deleted."""
        params = {} if keep_days is None else {"keep_days": keep_days}
        return self._put(_artefact_path(owner_kind, owner_id, name), content, params, "application/octet-stream")

    def get_artefact(self, owner_kind: str, owner_id: str, name: str, into: IO[bytes]) -> int:
        """Write an artefact's bytes to `into`; returns how many. Raises WindrowClientError if they are not the ones
        that were stored: then throw away what was written."""
        digest, size = hashlib.sha256(), 0
        with self._stream("GET", _artefact_path(owner_kind, owner_id, name), read_s=FILES_S) as answer:
            for data in answer.iter_bytes():
                digest.update(data)
                size += into.write(data)
            if answer.headers.get("X-Artefact-SHA256") != digest.hexdigest():
                raise WindrowClientError(
                    f"{name} does not match its checksum: it was damaged on the way. Fetch it again."
                )
        return size

    def delete_artefact(self, owner_kind: str, owner_id: str, name: str) -> None:
        """Remove an artefact."""
        self.request("DELETE", _artefact_path(owner_kind, owner_id, name))

    def create_volume(self, name: str, max_bytes: int | None = None) -> Json:
        """Make an empty volume; `volumes` of a cluster's or a job's request names it as NAME:/path or NAME:/path:ro."""
        body = {"name": name} | ({} if max_bytes is None else {"max_bytes": max_bytes})
        answer: Json = self.request("POST", "/volumes", body=body)
        return answer

    def volumes(self) -> Iterator[Json]:
        """The account's volumes, by name."""
        return self.items("/volumes")

    def volume(self, name: str) -> Json:
        """One of them."""
        answer: Json = self.get(f"/volumes/{name}")
        return answer

    def delete_volume(self, name: str) -> None:
        """Delete a volume and all that is in it; refused while a cluster has it."""
        self.request("DELETE", f"/volumes/{name}")

    def save_volumes(self, cluster_id: str) -> Json:
        """Save now what has changed in the volumes that a cluster writes."""
        answer: Json = self._long("POST", f"/clusters/{cluster_id}/volumes/save", {})
        return answer

    def set_secret(self, name: str, value: str | bytes, kind: str | None = None) -> Json:
        """Keep a value under a name in the project, in place of an older one. Text goes into its variable as it is,
        bytes in base64. kind: text, file or registry_login (NAME:PASSWORD); by itself text, or file for bytes."""
        text = value if isinstance(value, str) else base64.b64encode(value).decode()
        chosen = kind or ("text" if isinstance(value, str) else "file")
        answer: Json = self.request("PUT", f"/secrets/{quote(name, safe='')}", body={"value": text, "kind": chosen})
        return answer

    def secrets(self) -> Iterator[Json]:
        """The project's secrets, by name, without their values."""
        return self.items("/secrets")

    def delete_secret(self, name: str) -> Json:
        """Delete a secret; the answer's `warning` names work that waits for its value."""
        answer: Json = self.request("DELETE", f"/secrets/{quote(name, safe='')}")
        return answer

    # --- the registry of compute resources ------------------------------------------------------

    def resources(self, **filters: str | None) -> list[Json]:
        """The registered resources, by number. filters: `status_filter`, `resource_type`, `provider`."""
        answer: list[Json] = self.get(self._registry(), **filters)
        return answer

    def resource(self, resource_id: str) -> Json:
        """One of them."""
        answer: Json = self.get(self._registry(resource_id))
        return answer

    def add_resource(self, record: Json) -> Json:
        """Register one; returns its whole record."""
        answer: Json = self.request("POST", self._registry(), body=record)
        return answer

    def set_resource(self, resource_id: str, changes: Json) -> Json:
        """Change these fields of one."""
        answer: Json = self.request("PUT", self._registry(resource_id), body=changes)
        return answer

    def binding(self, resource_id: str) -> Json:
        """What stands behind a resource: its host, how that stands, its price."""
        answer: Json = self.get(f"/resources/{quote(resource_id, safe='')}")
        return answer

    def bind_resource(self, resource_id: str, host_id: str | None, *, dedicated: bool = False) -> Json:
        """Let this host run its work; None: no host. dedicated: the host, one of your own, takes no work but yours."""
        path = f"/resources/{quote(resource_id, safe='')}/binding"
        body = None if host_id is None else {"host": host_id, "dedicated": dedicated}
        answer: Json = self.request("DELETE" if host_id is None else "PUT", path, body=body)
        return answer

    def remove_resource(self, resource_id: str) -> None:
        """Remove one from the registry."""
        self.request("DELETE", self._registry(resource_id))

    def _registry(self, *path: str) -> str:
        """An address of the registry, which is not below the others."""
        return "/".join(
            [f"{self.config.url}/api/model-studio/compute-resources", *(quote(one, safe="") for one in path)]
        )

    # --- clouds: backends and what is bought there ----------------------------------------------

    def backend_kinds(self) -> Iterator[Json]:
        """The kinds of backends that the Master knows, with their settings and how each was tested."""
        return self.items("/backend-kinds")

    def backends(self) -> Iterator[Json]:
        """The backends by name, with what is owed at each."""
        return self.items("/backends")

    def backend(self, name: str) -> Json:
        """One of them."""
        answer: Json = self.get(_backend(name))
        return answer

    def add_backend(self, record: Json) -> Json:
        """Add one; buys nothing. record: `name`, `kind`, `settings`, `secrets`, `caps`."""
        answer: Json = self.request("POST", "/backends", body=record)
        return answer

    def renew_backend(self, name: str, secrets: dict[str, str]) -> Json:
        """Give one other credentials of the same account; what runs goes on."""
        answer: Json = self.request("PUT", f"{_backend(name)}/secrets", body={"secrets": secrets})
        return answer

    def remove_backend(self, name: str) -> None:
        """Remove one and its credentials; refused while something bought there is not surely gone."""
        self.request("DELETE", _backend(name))

    def set_caps(self, name: str, caps: Json) -> Json:
        """Replace the caps of one; what runs goes on."""
        answer: Json = self.request("PUT", f"{_backend(name)}/caps", body=caps)
        return answer

    def buyers(self, name: str) -> Iterator[Json]:
        """The projects whose work may buy machines there by itself."""
        return self.items(f"{_backend(name)}/buyers")

    def allow_buyer(self, name: str, account: str, most: Json) -> Json:
        """Let the work of a project buy machines there. most: `per_day`, `in_all`."""
        answer: Json = self.request("PUT", f"{_backend(name)}/buyers/{quote(account, safe='')}", body=most)
        return answer

    def disallow_buyer(self, name: str, account: str) -> None:
        """Let the work of a project buy nothing more there."""
        self.request("DELETE", f"{_backend(name)}/buyers/{quote(account, safe='')}")

    def backend_offers(self, name: str, **wanted: Any) -> Iterator[Json]:
        """Machines that could be bought there now, the cheapest first. wanted: `gpus`, `gpu`, `cpus`, `memory_gib`,
        `region`, `kind`."""
        return self.items(f"{_backend(name)}/offers", **wanted)

    def check_backend(self, name: str) -> list[Json]:
        """Check credentials, permissions, quota, clock, image and reachability; buys nothing."""
        answer: Json = self.request("POST", f"{_backend(name)}/check", body={})
        return list(answer["findings"])

    def sweep_backend(self, name: str, market_id: str | None = None) -> Json:
        """End all there that carries this market's id and belongs to no living purchase."""
        answer: Json = self.request("POST", f"{_backend(name)}/sweep", body={"market_id": market_id})
        return answer

    def stop_all(self, name: str) -> list[str]:
        """End all purchases of a backend now; returns their ids."""
        answer: Json = self.request("POST", f"{_backend(name)}/stop-all", body={})
        return list(answer["ended"])

    def purchases(self, **of: str | None) -> Iterator[Json]:
        """The purchases, the latest first. of: `backend`, `state`."""
        return self.items("/purchases", **of)

    def purchase(self, purchase_id: str) -> Json:
        """One of them, with the end of its machine's console where it never joined."""
        answer: Json = self.get(f"/purchases/{quote(purchase_id, safe='')}")
        return answer

    def buy(self, backend: str, offer: str, hours: float, account: str | None = None) -> Json:
        """Buy a machine for a project, by id or name; None: your own. It is ended after so many hours."""
        body = {"backend": backend, "offer": offer, "hours": hours, "account": account}
        answer: Json = self.request("POST", "/purchases", body=body)
        return answer

    def end_purchase(self, purchase_id: str, reason: str = "") -> Json:
        """End a purchase, and what runs on its machine."""
        answer: Json = self.request("POST", f"/purchases/{quote(purchase_id, safe='')}/end", body={"reason": reason})
        return answer

    # --- checkpoints ----------------------------------------------------------------------------

    def save_checkpoint(self, cluster_id: str) -> Json:
        """Save what the work has made whole since the last time; `checkpoint` is null where there is nothing new."""
        answer: Json = self._long("POST", f"/clusters/{cluster_id}/checkpoints", {})
        return answer

    def restore_checkpoint(self, cluster_id: str, source: str) -> Json:
        """Put the newest whole checkpoint of the cluster `source` into this one's folder."""
        answer: Json = self._long("POST", f"/clusters/{cluster_id}/checkpoints/restore", {"source": source})
        return answer

    def receipt_of(self, cluster_id: str, timeout_s: float = 30.0) -> Json:
        """The receipt of a cluster that has ended; waits for its last signed second."""
        ends = time.monotonic() + timeout_s
        while True:
            for receipt in self.items("/receipts", cluster=cluster_id):
                if receipt.get("ended_at"):
                    full: Json = self.get(f"/receipts/{receipt['id']}")
                    return full
            if time.monotonic() > ends:
                raise WaitTimedOut(
                    f"No final receipt of {cluster_id} after {timeout_s:.0f} s; see `windrow receipt ls`."
                )
            time.sleep(0.25)

    def export(self, host_id: str, into: IO[bytes], **query: Any) -> int:
        """Write a host's history as a file (format csv or parquet) to `into`; returns its bytes. query: as the API's,
        with `start` and `end` for `from` and `to`."""
        renamed = {{"start": "from", "end": "to"}.get(name, name): value for name, value in query.items()}
        params = {name: value for name, value in renamed.items() if value is not None}
        written = 0
        with self._stream("GET", f"/hosts/{host_id}/export", params=params, read_s=FILES_S) as answer:
            for data in answer.iter_bytes():
                written += into.write(data)
        return written

    # --- jobs ----------------------------------------------------------------------------------

    def submit_job(self, request: Json) -> list[Json]:
        """Submit a job, or all of an array; returns them as they are now (they go on by themselves)."""
        answer: Json = self.request("POST", "/jobs", body=request)
        jobs: list[Json] = answer["jobs"]
        return jobs

    def job(self, job_id: str) -> Json:
        """One job."""
        answer: Json = self.get(f"/jobs/{job_id}")
        return answer

    def put_job_folder(self, job_id: str, tar: IO[bytes]) -> Json:
        """Send the folder, a tar stream, that a job waits for; the Master keeps it."""
        return self._put(f"/jobs/{job_id}/files", tar, {}, TAR)

    def job_logs(self, job_id: str, *, follow: bool = False, attempt: int | None = None) -> Iterator[bytes]:
        """The log of its last attempt; with `follow` of all of them, as it is written, until the job ends."""
        params = {"follow": "true" if follow else "false"} | ({"attempt": str(attempt)} if attempt else {})
        read_s = None if follow else DEADLINE_S
        with self._stream("GET", f"/jobs/{job_id}/logs", params=params, read_s=read_s) as answer:
            yield from answer.iter_bytes()

    def job_files(self, job_id: str, attempt: int | None = None) -> Archive:
        """Returns the files that an attempt changed, to be brought here."""
        return Archive(self, f"/jobs/{job_id}/artefacts", {"attempt": str(attempt)} if attempt else {})

    def wait_job(self, job_id: str, timeout_s: float | None, on_change: Callable[[Json], None] | None = None) -> Json:
        """Wait until it has ended; raises WaitTimedOut after `timeout_s` seconds, None: never."""
        ends, seen = time.monotonic() + (timeout_s or 0), None
        while True:
            job = self.job(job_id)
            if on_change is not None and job["version"] != seen:
                seen = job["version"]
                on_change(job)
            if job["ended_at"]:
                return job
            if timeout_s is not None and time.monotonic() > ends:
                raise WaitTimedOut(f"Job {job_id} is still {job['state']} after {timeout_s:.0f} s.")
            time.sleep(JOB_LOOK_S)


def _backend(name: str) -> str:
    return f"/backends/{quote(name, safe='')}"


def _artefact_path(owner_kind: str, owner_id: str, name: str) -> str:
    try:
        path = quote(name)
    except UnicodeEncodeError:
        path = ""
    if not path or not name.isprintable():
        raise InvalidInput(f"{name!r} cannot be the name of an artefact: it needs printable characters in UTF-8.")
    return f"/artefacts/{quote(owner_kind, safe='')}/{quote(owner_id, safe='')}/{path}"


def _has_begun(cluster: Json, rank: int) -> bool:
    """True if the work of this rank runs, or is over."""
    begun = [one["rank"] for one in cluster.get("workloads") or [] if one["phase"] in ("running", "exited")]
    return cluster["phase"] not in BEFORE_WORK or rank in begun


def _member(rank: int) -> dict[str, int]:
    """Which member of a cluster is meant, where it is not the first."""
    return {"rank": rank} if rank else {}
