// Search words of an address: plain text that people read, edit and send. Pure.

export type SearchWords = Record<string, string | undefined>;

/** Plain words instead of the router's JSON. */
export function parseSearch(text: string): SearchWords {
  return Object.fromEntries(new URLSearchParams(text.startsWith("?") ? text.slice(1) : text));
}

export function stringifySearch(search: Record<string, unknown>): string {
  const words = new URLSearchParams();
  for (const [key, value] of Object.entries(search))
    if (value !== undefined && value !== null && value !== "") words.set(key, String(value));
  const text = words.toString().replace(/%2C/g, ",").replace(/%2F/g, "/").replace(/%3A/g, ":");
  return text ? `?${text}` : "";
}

// A value may itself hold a comma (region names are free text), so commas inside are escaped once more.
const escaped = (value: string): string => value.replace(/~/g, "~0").replace(/,/g, "~1");
const unescaped = (value: string): string => value.replace(/~1/g, ",").replace(/~0/g, "~");

export const split = (text: string | undefined): readonly string[] => (text ? text.split(",").map(unescaped) : []);
export const joined = (values: readonly string[]): string => values.map(escaped).join(",");

const KEPT_CHARS_MOST = 2_000;

const isRecord = (found: unknown): found is Record<string, unknown> =>
  typeof found === "object" && found !== null && !Array.isArray(found);

/** Reads a table that this browser keeps: another version may have written it, or another hand. What is no T goes. */
export const readKept =
  <T>(isOne: (value: unknown) => value is T) =>
  (text: string | undefined): Record<string, T> => {
    try {
      const found: unknown = JSON.parse(text ?? "");
      const good = isRecord(found) ? Object.entries(found).filter((one): one is [string, T] => isOne(one[1])) : [];
      return Object.fromEntries(good);
    } catch {
      return {};
    }
  };

/** Search words of saved views by their names. */
export const readViews = readKept(
  (value): value is string => typeof value === "string" && value.length <= KEPT_CHARS_MOST,
);
/** Columns that are shown or hidden, by their ids. */
export const readColumns = readKept((value): value is boolean => typeof value === "boolean");
