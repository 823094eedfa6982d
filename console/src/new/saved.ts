// Images and SSH keys that were used before: a form offers them, so that nobody types them twice. Pure.
import type { Cluster, Job, Template } from "../api/types.ts";

const OFFERED_MOST = 8;

/** The newest first, each once. project: its own alone; who oversees the market reads those of others as well. */
export function usedBefore(
  project: string | undefined,
  clusters: readonly Cluster[],
  jobs: readonly Job[],
  templates: readonly Template[],
) {
  const isOwn = (one: Cluster | Job) => one.account_id === project;
  const machines = [...clusters.filter(isOwn), ...templates].map((one) => one.request);
  // An image with which a machine failed is not offered again, unless another one has run with it.
  const ran = [...clusters.filter((one) => isOwn(one) && one.phase !== "Failed"), ...templates].map(
    (one) => one.request,
  );
  const images = [...ran, ...jobs.filter(isOwn).map((one) => one.request)].flatMap((one) => one.image ?? []);
  return { images: some(images), keys: some(machines.flatMap((one) => one.ssh_keys)) };
}

const some = (all: readonly string[]) => [...new Set(all)].slice(0, OFFERED_MOST);

/** How a public key is called: by its comment, else by its last letters. */
export function keyName(key: string): string {
  const [kind = "", text = "", ...comment] = key.trim().split(/\s+/);
  return comment.join(" ") || `${kind.replace(/^ssh-/, "")} …${text.slice(-8)}`;
}
