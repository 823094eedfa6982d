// The state of the connection to the Master for the whole page, and the probing that ends an outage.

type Listener = () => void;

/** First soon, then calmer: a Master restarts in seconds, and a tab may stay open for days. */
const PROBE_FIRST_MS = 500;
const PROBE_MOST_MS = 8_000;
const PROBE_DEADLINE_MS = 4_000;

class Connection {
  private listeners = new Set<Listener>();
  private lostAt: number | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private wait = PROBE_FIRST_MS;

  /** Milliseconds since the epoch at which the Master was lost; null while it answers. */
  since = (): number | null => this.lostAt;

  subscribe = (listener: Listener): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  lost(): void {
    if (this.lostAt !== null) return;
    this.lostAt = Date.now();
    this.wait = PROBE_FIRST_MS;
    this.plan();
    this.tell();
  }

  probeNow(): void {
    if (this.timer) clearTimeout(this.timer);
    void this.probe();
  }

  private plan(): void {
    this.timer = setTimeout(() => void this.probe(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, PROBE_MOST_MS);
  }

  private async probe(): Promise<void> {
    try {
      const answer = await fetch("/healthz", { cache: "no-store", signal: AbortSignal.timeout(PROBE_DEADLINE_MS) });
      // A Master that says what ails it is there; a proxy that says it is not there is not the Master.
      if (answer.status === 502 || answer.status === 504) throw new Error(String(answer.status));
      this.lostAt = null;
      this.tell();
    } catch {
      this.plan();
    }
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

export const connection = new Connection();
