// Secrets from the fields of a form: names, values, the uses of a job or cluster. Pure.
import type { Secret, SecretRequest } from "../api/types.ts";
import { lines } from "../volumes/volumes.ts";

const NAME = /^[A-Z][A-Z0-9_]{0,63}$/;
const USE = /^([A-Z][A-Z0-9_]{0,63})(?:=([A-Za-z_][A-Za-z0-9_]{0,127}))?$/;
/** Of one cluster or job. */
const USES_MOST = 32;
/** Of one value. */
export const BYTES_MOST = 64 * 1024;

export type SecretKind = NonNullable<SecretRequest["kind"]>;

export const KINDS: readonly { value: SecretKind; label: string; hint: string }[] = [
  { value: "text", label: "Text", hint: "The variable holds it as it is." },
  { value: "file", label: "File", hint: "Any bytes; the variable holds them in base64." },
  { value: "registry_login", label: "Registry login", hint: "NAME:PASSWORD, for private images." },
];

export interface SecretDraft {
  name: string;
  kind: SecretKind;
  /** Of a text or a login. */
  text: string;
  /** Of a file; null: none is chosen; "large": one that is not read. */
  bytes: Uint8Array | "large" | null;
}

export const BLANK_SECRET: SecretDraft = { name: "", kind: "text", text: "", bytes: null };

export type SecretFaults = Partial<Record<"name" | "value", string>>;

export function toSecret(draft: SecretDraft): { name: string; request: SecretRequest; faults: SecretFaults } {
  const faults: SecretFaults = {};
  const name = draft.name.trim();
  if (!NAME.test(name)) faults.name = "Capital letters, digits and _, 64 at most; the first a letter";
  const bytes = draft.kind === "file" ? draft.bytes : new TextEncoder().encode(draft.text);
  if (bytes === "large") faults.value = "At most 64 KiB";
  else if (!bytes?.length) faults.value = draft.kind === "file" ? "A file" : "A value";
  else if (bytes.length > BYTES_MOST) faults.value = "At most 64 KiB";
  else if (draft.kind === "text" && bytes.includes(0)) faults.value = "A text without NUL";
  else if (draft.kind === "registry_login" && !/^[^:\s][^:\n]*:[^\n]+$/.test(draft.text.trim()))
    faults.value = "NAME:PASSWORD on one line";
  const isFile = draft.kind === "file" && bytes instanceof Uint8Array && !faults.value;
  const value = isFile ? base64(bytes) : draft.text;
  return { name, request: { value, kind: draft.kind }, faults };
}

function base64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (one) => String.fromCharCode(one)).join(""));
}

/** The request as it is shown, which never has the value. */
export const shownSecret = (kind: SecretKind): SecretRequest => ({ value: "YOUR_VALUE", kind });

/** The same as the `windrow` command, which asks for the value or reads a file. */
export function asSecretCommand(name: string, kind: SecretKind): string {
  const words = ["windrow", "secret", "set", name || "NAME"];
  if (kind !== "text") words.push("--kind", kind);
  if (kind === "file") words.push("--file", "FILE");
  return words.join(" ");
}

/** The secrets that a form's lines name: NAME, or NAME=VARIABLE. */
export function readSecrets(text: string): { secrets: string[]; fault?: string } {
  const secrets = lines(text);
  const seen = new Set<string>();
  for (const line of secrets) {
    const read = USE.exec(line);
    if (!read) return { secrets: [], fault: `Not NAME or NAME=VARIABLE: ${line}` };
    const variable = read[2] ?? read[1]!;
    if (seen.has(variable)) return { secrets: [], fault: `The variable ${variable} has two values` };
    seen.add(variable);
  }
  if (secrets.length > USES_MOST) return { secrets: [], fault: `At most ${USES_MOST} secrets` };
  return { secrets };
}

/** Secrets for variables that no line names yet. */
export function unusedSecrets(known: readonly Secret[], text: string): string[] {
  const named = new Set(lines(text).map((line) => line.split("=")[0]));
  return known.filter((one) => one.kind !== "registry_login" && !named.has(one.name)).map((one) => one.name);
}
