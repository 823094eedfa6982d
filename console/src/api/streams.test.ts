import { afterEach, beforeEach, expect, it, vi } from "vitest";

class Page extends EventTarget {
  hidden = false;
  show(hidden: boolean) {
    this.hidden = hidden;
    this.dispatchEvent(new Event("visibilitychange"));
  }
}

const page = new Page();
const asked: AbortSignal[] = [];
vi.stubGlobal("document", page);
vi.stubGlobal("location", { origin: "http://console.test" });
vi.stubGlobal("BroadcastChannel", undefined);
vi.stubGlobal("fetch", (_: string, init: RequestInit) => {
  asked.push(init.signal!);
  return new Promise(() => undefined);
});
const { openStream } = await import("./streams.ts");

beforeEach(() => void vi.useFakeTimers());
afterEach(() => {
  vi.useRealTimers();
  asked.length = 0;
  page.hidden = false;
});

it("a tab opened behind another holds no connection until somebody looks at it", () => {
  page.hidden = true;
  const close = openStream("/events/stream", { on: {} });
  vi.advanceTimersByTime(60_000);
  expect(asked).toHaveLength(0);
  page.show(false);
  expect(asked).toHaveLength(1);
  close();
});

it("a tab closes its connection after 20 hidden seconds and opens one when it is shown again", () => {
  const close = openStream("/events/stream", { on: {} });
  expect(asked).toHaveLength(1);
  page.show(true);
  vi.advanceTimersByTime(21_000);
  expect(asked[0]?.aborted).toBe(true);
  page.show(false);
  expect(asked).toHaveLength(2);
  close();
});
