// Volumes from the fields of a form: names, sizes, mounts. Pure.
import type { Volume, VolumeRequest } from "../api/types.ts";
import { GIB, toBytes } from "../parts/format.ts";

const NAME = /^[a-z0-9][a-z0-9.-]{0,39}$/;
const MOUNT = /^([a-z0-9][a-z0-9.-]{0,39}):((?:\/[A-Za-z0-9_][A-Za-z0-9._-]*)+)\/?(:ro|:rw)?$/;
/** Of one cluster or job. */
const MOUNTS_MOST = 8;
/** Of one version. */
const BYTES_MOST = 64 * GIB;

export interface VolumeDraft {
  name: string;
  maxSize: string;
}

export type VolumeFaults = Partial<Record<keyof VolumeDraft, string>>;

/** The request, and the size as `windrow` takes it. */
export function toVolume(draft: VolumeDraft): { request: VolumeRequest; size: string; faults: VolumeFaults } {
  const faults: VolumeFaults = {};
  const request: VolumeRequest = { name: draft.name.trim() };
  const size = draft.maxSize.replace(/\s+/g, "");
  if (!NAME.test(request.name)) faults.name = "1 to 40 lower-case letters, digits, . and -";
  const most = toBytes(size);
  if (most && most <= BYTES_MOST) request.max_bytes = most;
  else if (size) faults.maxSize = "A size such as 20GB, 64GiB at most";
  return { request, size, faults };
}

/** The fields of a form that decide about volumes. */
export interface MountsDraft {
  /** A line each: NAME:/path or NAME:/path:ro. */
  volumes: string;
  simulated: boolean;
}

export function readMounts(draft: MountsDraft, hosts: number): { volumes: string[]; fault?: string } {
  const volumes = lines(draft.volumes);
  const fault = mountsFault(volumes, draft.simulated, hosts);
  return fault ? { volumes: [], fault } : { volumes };
}

export const lines = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function mountsFault(volumes: readonly string[], simulated: boolean, hosts: number): string | undefined {
  const seen: { name: string; path: string }[] = [];
  for (const line of volumes) {
    const read = MOUNT.exec(line);
    if (!read) return `Not NAME:/path or NAME:/path:ro: ${line}`;
    const [name, path, mode] = [read[1]!, read[2]!, read[3]];
    if (hosts > 1 && mode !== ":ro")
      return `One host writes a volume; over several hosts it is read-only: ${name}:${path}:ro`;
    for (const other of seen) {
      if (other.name === name) return `The volume ${name} is named twice`;
      if (`${path}/`.startsWith(`${other.path}/`) || `${other.path}/`.startsWith(`${path}/`))
        return `${other.path} and ${path} lie in each other`;
    }
    seen.push({ name, path });
  }
  if (volumes.length > MOUNTS_MOST) return `At most ${MOUNTS_MOST} volumes`;
  if (volumes.length && simulated) return "Simulated hosts have no volumes";
  return undefined;
}

/** A line as it was asked for, taken apart. */
export function partsOf(mount: string): { name: string; path: string; writes: boolean } {
  const [name = "", path = "", mode] = mount.split(":");
  return { name, path, writes: mode !== "ro" };
}

/** Volumes of the account that no line names yet. */
export function unnamed(known: readonly Volume[], text: string): string[] {
  const named = new Set(lines(text).map((line) => partsOf(line).name));
  return known.map((one) => one.name).filter((name) => !named.has(name));
}

/** The same lines and one more; each volume has a folder of its own. */
export function withMount(text: string, name: string, hosts: number): string {
  const taken = lines(text);
  const path = taken.some((line) => partsOf(line).path === "/data") ? `/data-${name}` : "/data";
  return [...taken, `${name}:${path}${hosts > 1 ? ":ro" : ""}`].join("\n");
}

/** The clusters that use a volume, the writer first. */
export const usersOf = (volume: Volume): Volume["used_by"] =>
  [...volume.used_by].sort((left, right) => Number(right.writes) - Number(left.writes));
