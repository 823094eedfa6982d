// Numbers, sizes, money and times as text. Pure: the present moment is always an argument.

export const DASH = "–";

type Maybe = number | null | undefined;

const absent = (value: Maybe): value is null | undefined =>
  value === null || value === undefined || !Number.isFinite(value);

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 });

export function count(value: Maybe): string {
  return absent(value) ? DASH : grouped.format(value);
}

export function decimal(value: Maybe, digits = 1): string {
  return absent(value) ? DASH : value.toFixed(digits);
}

/** A figure with its unit: "12.3 ms". */
export function measured(value: Maybe, unit: string, digits = 1): string {
  return absent(value) ? DASH : `${value.toFixed(digits)} ${unit}`;
}

export function percent(ratio: Maybe): string {
  return absent(ratio) ? DASH : `${Math.round(ratio * 100)}%`;
}

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

export const GIB = 1024 ** 3;

/** Three significant digits at most, in binary units: memory and disks are counted that way. */
export function bytes(value: Maybe): string {
  return scaled(value, 1024, BINARY);
}

const DECIMAL_RATE = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"] as const;

/** bits per second, in decimal units: networks are counted that way. */
export function bitrate(value: Maybe): string {
  return scaled(value, 1000, DECIMAL_RATE);
}

/** Per second, in decimal units, as data sheets of cards count bytes and operations. */
export function rate(value: number, unit: string): string {
  const step = Math.min(PREFIXES.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${Number((value / 1000 ** step).toPrecision(3))} ${PREFIXES[step]}${unit}`;
}

const PREFIXES = ["", "k", "M", "G", "T", "P"] as const;

function scaled(value: Maybe, step: number, units: readonly string[]): string {
  if (absent(value)) return DASH;
  let left = value;
  let unit = 0;
  while (Math.abs(left) >= 1000 && unit < units.length - 1) {
    left /= step;
    unit += 1;
  }
  return `${significant(left)} ${units[unit]}`;
}

/** A size as people type it: "20GB", "1.5 TiB". Whole bytes, or null. */
export function toBytes(text: string): number | null {
  const read = /^(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?$/i.exec(text.trim());
  if (!read) return null;
  const power = "KMGT".indexOf((read[2] ?? "").toUpperCase()) + 1;
  return Math.trunc(Number(read[1]) * (read[3] ? 1024 : 1000) ** power);
}

function significant(value: number): string {
  const size = Math.abs(value);
  if (size === 0 || size >= 100 || Number.isInteger(value)) return value.toFixed(0);
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function celsius(value: Maybe): string {
  return absent(value) ? DASH : `${Math.round(value)} °C`;
}

export function watts(value: Maybe): string {
  return absent(value) ? DASH : `${Math.round(value)} W`;
}

export function hertz(value: Maybe): string {
  if (absent(value)) return DASH;
  return value >= 1e9 ? `${(value / 1e9).toFixed(2)} GHz` : `${Math.round(value / 1e6)} MHz`;
}

/** One value of a metric in the unit that the catalogue names (UCUM), as a chart's axis or table shows it. */
export function inUnit(value: Maybe, unit: string): string {
  if (absent(value)) return DASH;
  switch (unit) {
    case "ratio":
      return percent(value);
    case "By":
      return bytes(value);
    case "By/s":
      return `${bytes(value)}/s`;
    case "bit/s":
      return bitrate(value);
    case "Cel":
      return celsius(value);
    case "W":
      return watts(value);
    case "Hz":
      return hertz(value);
    default:
      return significant(value);
  }
}

/** A field of a GPU, whatever it is: a figure in its unit, yes or no, or words. */
export function fieldText(value: number | string | boolean | null | undefined, unit: string): string {
  if (value === null || value === undefined) return DASH;
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "string") return plain(value);
  if (["ratio", "By", "By/s", "Cel", "W", "Hz"].includes(unit)) return inUnit(value, unit);
  const rounded = Number.isInteger(value) ? count(value) : value.toPrecision(4);
  return unit === "1" || unit === "" ? rounded : `${rounded} ${plain(unit)}`;
}

/** Decimals of money wherever it is shown; the command shows the same. */
const MONEY_DIGITS = 4;

/**
 * A decimal string, never through a float: rounded half up to so many decimals, two at least. An amount below one keeps
 * its first two digits however small it is: something is never shown as nothing.
 */
export function amount(text: string | null | undefined, digits = MONEY_DIGITS): string {
  if (text === null || text === undefined) return DASH;
  const parts = /^(-?)(\d+)(?:\.(\d*))?$/.exec(text.trim());
  if (!parts) return text;
  const [, sign, whole = "0", fraction = ""] = parts;
  const kept = Math.max(digits, Number(whole) === 0 ? fraction.search(/[1-9]/) + 2 : 0);
  const up = (fraction[kept] ?? "0") >= "5" ? 1n : 0n;
  const rounded = (BigInt(whole + fraction.slice(0, kept).padEnd(kept, "0")) + up).toString().padStart(kept + 1, "0");
  const grouped = rounded.slice(0, -kept).replace(/\B(?=(\d{3})+$)/g, ",");
  return `${sign ? "−" : ""}${grouped}.${rounded.slice(-kept).replace(/0+$/, "").padEnd(2, "0")}`;
}

/** Less than prices show; as a large figure it would be zeros. */
export const isTiny = (text: string | null | undefined): boolean => /^0\.0000\d*[1-9]/.test(text ?? "");

export function money(text: string | null | undefined, currency: string): string {
  return `${amount(text)} ${plain(currency)}`;
}

export function perHour(text: string | null | undefined): string {
  return text === null || text === undefined ? DASH : `${amount(text)}/h`;
}

/** Whole words only where they help: "3.2 s", "4 min 5 s", "2 h 3 min", "5 d 1 h". */
export function duration(seconds: number | string | null | undefined): string {
  const value = typeof seconds === "string" ? Number(seconds) : seconds;
  if (absent(value)) return DASH;
  if (value < 10) return `${value.toFixed(1)} s`;
  const whole = Math.floor(value);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return pair(Math.floor(whole / 60), "min", whole % 60, "s");
  if (whole < 86400) return pair(Math.floor(whole / 3600), "h", Math.floor((whole % 3600) / 60), "min");
  return pair(Math.floor(whole / 86400), "d", Math.floor((whole % 86400) / 3600), "h");
}

/** The duration from one moment to another. */
export function took(from: string | null, to: string | null): string {
  return from && to ? duration(Math.max(0, (Date.parse(to) - Date.parse(from)) / 1000)) : DASH;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small ? `${large} ${largeUnit} ${small} ${smallUnit}` : `${large} ${largeUnit}`;
}

const LONGEST = [86400, "d", Number.POSITIVE_INFINITY] as const;
/** Seconds, the unit, and from how many of them the next one is used. */
const STEPS = [[1, "s", 60], [60, "min", 60], [3600, "h", 24], LONGEST] as const;

/** "now", "12 s ago", "in 3 h": the nearest in one unit, since the exact time is in the tooltip. */
export function relative(iso: string | null | undefined, nowMs: number): string {
  if (!iso) return DASH;
  const at = Date.parse(iso);
  if (Number.isNaN(at)) return DASH;
  const seconds = Math.round((nowMs - at) / 1000);
  const size = Math.abs(seconds);
  if (size < 2) return "now";
  const [step, unit] = STEPS.find(([step, , most]) => Math.round(size / step) < most) ?? LONGEST;
  const n = Math.round(size / step);
  return seconds > 0 ? `${n} ${unit} ago` : `in ${n} ${unit}`;
}

const exactFormat = new Intl.DateTimeFormat("en-GB", {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  timeZoneName: "short",
});

export function exact(iso: string | null | undefined): string {
  if (!iso) return DASH;
  const at = Date.parse(iso);
  return Number.isNaN(at) ? DASH : exactFormat.format(at);
}

const clockFormat = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function clock(ms: number): string {
  return clockFormat.format(ms);
}

/** At an axis that spans so many seconds: the day, the minute or the second. */
export function axisTime(ms: number, spanS: number): string {
  const at = new Date(ms);
  if (spanS > DAY_S) return [at.getMonth() + 1, at.getDate()].map((part) => String(part).padStart(2, "0")).join("-");
  return clock(ms).slice(0, spanS <= 300 ? 8 : 5);
}

export const DAY_S = 86_400;

const dayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "short", timeZone: "UTC" });

export function weekday(day: string): string {
  return dayFormat.format(Date.parse(`${day}T12:00:00Z`));
}

const collator = new Intl.Collator("en-GB", { numeric: true, sensitivity: "base" });

/** The order of texts for people: numbers in them as numbers. */
export function compareTexts(one: string, other: string): number {
  return collator.compare(one, other);
}

/** Several names in a line. */
export function listed(names: readonly string[]): string {
  return names.map(plain).join(", ") || DASH;
}

/** Other people's text made harmless: control and direction-changing characters become visible marks. */
export function plain(text: string | null | undefined): string {
  if (text === null || text === undefined || text === "") return DASH;
  return text
    .replace(/[\u0000-\u001f\u007f-\u009f]/g, "�")
    .replace(/[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g, "�");
}

/** Words of the Master that begin in the middle of its sentence, as a sentence of their own. */
export function sentence(text: string | null | undefined): string {
  const said = plain(text);
  return said.charAt(0).toUpperCase() + said.slice(1);
}

/** A state's word as a person reads it: `under_maintenance` becomes "Under maintenance". */
export function words(state: string | null | undefined): string {
  if (!state) return DASH;
  if (state === "Checkpointing") return "Saving files"; // log and files are brought in; a checkpoint is none of it
  const spaced = plain(state)
    .replace(/[._-]+/g, " ")
    .replace(/\b(gpu|cpu|nvml|id|ssh|http)\b/gi, (short) => short.toUpperCase());
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** A text with the ids in it shortened; show the whole one in a tooltip. */
export function shortIds(text: string | null | undefined): string {
  return plain(text).replace(/\b[a-z]+_[0-9a-f][0-9a-f-]{18,}/g, shortId);
}

/** The head and tail of a long id; the whole one is in the tooltip and on the clipboard. */
export function shortId(id: string | null | undefined): string {
  if (!id) return DASH;
  const [prefix, rest] = id.includes("_")
    ? [id.slice(0, id.indexOf("_") + 1), id.slice(id.indexOf("_") + 1)]
    : ["", id];
  return rest.length <= 10 ? id : `${prefix}…${rest.slice(-8)}`;
}
