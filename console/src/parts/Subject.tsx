// The link of an id: to its page, or to its events where it has no page.
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { me as meQuery } from "../api/queries.ts";
import type { Role } from "../api/types.ts";
import { useMayOpen } from "../app/PageButton.tsx";
import { plain, shortId } from "./format.ts";

/** True for who sees what strangers do on own hosts, and not the pages of it. */
const isOfStrangers = (roles: readonly Role[]): boolean =>
  roles.includes("provider") && !roles.includes("operator") && !roles.includes("auditor");

/** A cluster or a job has a page for who may read rentals; for others its id is only a text. */
export function Subject({ id, name }: { id: string | null | undefined; name?: string | undefined }) {
  const readsClusters = useMayOpen("/clusters");
  const readsJobs = useMayOpen("/jobs");
  const roles = useQuery(meQuery).data?.roles ?? [];
  if (!id) return <>–</>;
  const text = name ? (
    <span className="wr-break wr-name" title={plain(id)}>
      {plain(name)}
    </span>
  ) : (
    <span className="wr-mono wr-whole" title={plain(id)}>
      {plain(shortId(id))}
    </span>
  );
  const slot = /^(host_[0-9a-f-]+)\/./.exec(id)?.[1];
  if (slot)
    return (
      <Link className="wr-link" to="/events" search={{ subject: id }}>
        {text}
      </Link>
    );
  if (/^GPU-./.test(id))
    return (
      <Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: id }}>
        {text}
      </Link>
    );
  if (id.startsWith("host_"))
    return (
      <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: id }}>
        {text}
      </Link>
    );
  if (id.startsWith("job_") && readsJobs)
    return (
      <Link className="wr-link" to="/jobs/$jobId" params={{ jobId: id }}>
        {text}
      </Link>
    );
  if (id.startsWith("cluster_") && !readsClusters) return text;
  if (/^(cluster|job|workload)_/.test(id) && isOfStrangers(roles)) return text;
  if (id.startsWith("cluster_"))
    return (
      <Link className="wr-link" to="/clusters/$clusterId" params={{ clusterId: id }}>
        {text}
      </Link>
    );
  if (id.startsWith("command_") || id.startsWith("cmd_"))
    return (
      <Link className="wr-link" to="/commands/$commandId" params={{ commandId: id }}>
        {text}
      </Link>
    );
  return (
    <Link className="wr-link" to="/events" search={{ subject: id }}>
      {text}
    </Link>
  );
}

interface ActorProps {
  actor: string | null | undefined;
  names?: Record<string, string>;
}

/** `host/host_1`, `account/…`, `master`: who did it, with its page where it has one. */
export function Actor({ actor, names = {} }: ActorProps) {
  if (!actor) return <>–</>;
  const id = actor.slice(actor.indexOf("/") + 1);
  const name = names[id];
  if (id.startsWith("host_")) return <Subject id={id} name={name} />;
  if (name)
    return (
      <span className="wr-break" title={plain(actor)}>
        {plain(name)}
      </span>
    );
  return (
    <span className="wr-mono" title={plain(actor)}>
      {plain(id === actor ? actor : `${actor.slice(0, actor.indexOf("/"))} ${shortId(id)}`)}
    </span>
  );
}
