// The live fleet: one list, then a stream of changes, shown at most once per frame.
import { useSyncExternalStore } from "react";
import { everyPage, get } from "../api/client.ts";
import { openStream } from "../api/streams.ts";
import type { GpuList, GpuRow, Host, HostSummary } from "../api/types.ts";
import { type Batch, byName, type Fleet, merge, NO_FLEET } from "./rows.ts";

/** A hidden tab draws no frames; beyond this many batches it merges without waiting for one. */
const QUEUE_MOST = 20;
/** Going to a host and back should not read everything again. */
const LINGER_MS = 30_000;

export interface FleetView {
  fleet: Fleet;
  loading: boolean;
  error: unknown;
  /** The stream stands; otherwise what is shown is the last that was known. */
  live: boolean;
}

class FleetFeed {
  private view: FleetView = { fleet: NO_FLEET, loading: true, error: null, live: false };
  private listeners = new Set<() => void>();
  private queue: Batch[] = [];
  private frame = 0;
  private close: (() => void) | null = null;
  private lingering: ReturnType<typeof setTimeout> | null = null;
  private lists = 0;
  /** The newest that is known; null until the list was read. */
  private version: number | null = null;

  current = (): FleetView => this.view;

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.lingering) clearTimeout(this.lingering);
    this.lingering = null;
    if (!this.close) this.start();
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) this.lingering = setTimeout(() => this.stop(), LINGER_MS);
    };
  };

  again = (): void => void this.list();

  private start(): void {
    void this.list().then(() => this.follow());
  }

  /**
   * Changes after the list, or after the last batch; each time the stream is opened again it goes on from
   * there.
   */
  private follow(): void {
    if (this.close || this.listeners.size === 0) return;
    const query = () => ({ after: this.version });
    this.close = openStream(
      "/fleet/stream",
      {
        opened: () => (this.version === null ? void this.list() : this.show({ live: true })),
        failed: () => this.show({ live: false }),
        on: {
          rows: (data: { version: number; rows: GpuRow[] }) =>
            this.take({ version: data.version, gpus: data.rows, hosts: [], whole: false }),
          hosts: (data: { version: number; hosts: HostSummary[] }) =>
            this.take({ version: data.version, gpus: [], hosts: data.hosts, whole: false }),
        },
      },
      query,
    );
  }

  private stop(): void {
    this.close?.();
    this.close = null;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.queue = [];
  }

  /** Read everything: the cards, and the hosts that have none. What streams in meanwhile is applied on top. */
  private async list(): Promise<void> {
    this.lists += 1;
    const mine = this.lists;
    try {
      const bare = everyPage<Host>("/hosts", { gpus: false });
      bare.catch(() => undefined); // awaited below; until then its failing is nobody's
      const gpus = await get<GpuList>("/gpus");
      const hosts = await bare;
      if (mine !== this.lists) return;
      const whole: Batch = {
        version: gpus.version,
        gpus: byName(gpus.items, (gpu) => gpu.host_name),
        hosts: byName(hosts, (host) => host.name),
        whole: true,
      };
      this.version = gpus.version;
      this.show({ fleet: merge(NO_FLEET, [whole, ...this.taken()]), loading: false, error: null, live: true });
    } catch (error) {
      if (mine === this.lists) this.show({ loading: false, error, live: false });
    }
  }

  private taken(): Batch[] {
    const since = this.queue;
    this.queue = [];
    return since;
  }

  private take(batch: Batch): void {
    this.version = this.version === null ? null : Math.max(this.version, batch.version);
    this.queue.push(batch);
    if (this.view.loading) return;
    if (this.queue.length > QUEUE_MOST) this.flush();
    else if (!this.frame) this.frame = requestAnimationFrame(this.flush);
  }

  private flush = (): void => {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    const batches = this.queue;
    this.queue = [];
    this.show({ fleet: merge(this.view.fleet, batches), live: true });
  };

  private show(change: Partial<FleetView>): void {
    this.view = { ...this.view, ...change };
    for (const listener of this.listeners) listener();
  }
}

const feed = new FleetFeed();

export function useFleet(): FleetView & { again: () => void } {
  const view = useSyncExternalStore(feed.subscribe, feed.current);
  return { ...view, again: feed.again };
}
