// The live fleet of this page: one list, then the stream, shown at most once per frame.
import { useSyncExternalStore } from "react";
import { everyPage, get } from "../api/client.ts";
import { openStream } from "../api/streams.ts";
import type { GpuList, GpuRow, Host, HostSummary } from "../api/types.ts";
import { merge, NO_FLEET, type Batch, type Fleet } from "./rows.ts";

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

const names = new Intl.Collator("en-GB", { numeric: true });
const byName = (a: GpuRow | Host, b: GpuRow | Host) => names.compare("host_name" in a ? a.host_name : a.name, "host_name" in b ? b.host_name : b.name);

class FleetFeed {
  private view: FleetView = { fleet: NO_FLEET, loading: true, error: null, live: false };
  private listeners = new Set<() => void>();
  private queue: Batch[] = [];
  private frame = 0;
  private close: (() => void) | null = null;
  private lingering: ReturnType<typeof setTimeout> | null = null;
  private lists = 0;

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
    this.close = openStream("/fleet/stream", {
      opened: () => void this.list(),
      failed: () => this.show({ live: false }),
      on: {
        rows: (data: { version: number; rows: GpuRow[] }) => this.take({ version: data.version, gpus: data.rows, hosts: [], whole: false }),
        hosts: (data: { version?: number; hosts: HostSummary[] } | HostSummary[]) => {
          const hosts = Array.isArray(data) ? data : data.hosts;
          const version = (Array.isArray(data) ? undefined : data.version) ?? Number.MAX_SAFE_INTEGER;
          this.take({ version, gpus: [], hosts, whole: false });
        },
      },
    });
    void this.list();
  }

  private stop(): void {
    this.close?.();
    this.close = null;
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.queue = [];
  }

  /** Read everything afresh; what streamed in meanwhile is applied on top. Versions of a former Master are forgotten. */
  private async list(): Promise<void> {
    this.lists += 1;
    const mine = this.lists;
    try {
      const asked = everyPage<Host>("/hosts");
      asked.catch(() => undefined); // awaited below; until then its failing is nobody's
      const gpus = await get<GpuList>("/gpus");
      if (mine !== this.lists) return;
      const cards: Batch = { version: gpus.version, gpus: gpus.items.sort(byName), hosts: [], whole: true };
      // A large fleet's hosts come in many pages; its cards in one answer, and with them one can begin to work.
      const early = this.view.loading && gpus.items.length > 0;
      if (early) this.show({ fleet: merge(NO_FLEET, [cards, ...this.taken()]), loading: false, error: null, live: true });
      const hosts = await asked;
      if (mine !== this.lists) return;
      // On top of what this very listing showed, since the stream went on meanwhile; else afresh.
      const whole: Batch = { ...cards, hosts: hosts.sort(byName) };
      this.show({ fleet: merge(early ? this.view.fleet : NO_FLEET, [whole, ...this.taken()]), loading: false, error: null, live: true });
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
