// What people call the kinds of clusters. Pure.
import { words } from "../parts/format.ts";

const NAMES: Readonly<Record<string, string>> = { box: "Machine", gang: "Several hosts" };

export const kindName = (kind: string | null | undefined): string => (kind && NAMES[kind]) || words(kind);
