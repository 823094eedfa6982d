// Server-sent events from a stream of bytes, as the HTML standard says them. Pure.

export interface StreamEvent {
  name: string;
  data: string;
}

/**
 * Reads text as it comes; each call answers with the events that it completes. Ids and retry times are not used
 * here.
 */
export class EventReader {
  private rest = "";
  private name = "";
  private data: string[] = [];

  read(text: string): StreamEvent[] {
    const found: StreamEvent[] = [];
    const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      const event = this.take(line);
      if (event) found.push(event);
    }
    return found;
  }

  private take(line: string): StreamEvent | null {
    if (line === "") {
      const event = this.data.length ? { name: this.name || "message", data: this.data.join("\n") } : null;
      this.name = "";
      this.data = [];
      return event;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.name = value;
    if (field === "data") this.data.push(value);
    return null;
  }
}
