// Images and SSH keys that were used before: a form offers them, so that nobody types them twice. Pure.
import type { Cluster, Job, Template } from "../api/types.ts";

const OFFERED_MOST = 8;

/** The newest first, each once. */
export function usedBefore(clusters: readonly Cluster[], jobs: readonly Job[], templates: readonly Template[]) {
  const machines = [...clusters, ...templates].map((one) => one.request);
  const images = [...machines, ...jobs.map((one) => one.request)].flatMap((one) => one.image ?? []);
  return { images: some(images), keys: some(machines.flatMap((one) => one.ssh_keys)) };
}

const some = (all: readonly string[]) => [...new Set(all)].slice(0, OFFERED_MOST);

/** How a public key is called: by its comment, else by its last letters. */
export function keyName(key: string): string {
  const [kind = "", text = "", ...comment] = key.trim().split(/\s+/);
  return comment.join(" ") || `${kind.replace(/^ssh-/, "")} …${text.slice(-8)}`;
}
