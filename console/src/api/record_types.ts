// The audit log and the sessions of browsers, as types.ts: what the API keeps for people to look back on.

import type { Iso } from "./types.ts";

export interface AuditRow {
  number: number;
  at: Iso;
  epoch: number;
  actor: string;
  action: string;
  subject: string;
  reason: string;
  fields: Record<string, string>;
  chain: string;
}

export interface AuditHead {
  number: number;
  chain: string;
  at: Iso;
}

export interface AuditVerdict {
  intact: boolean;
  entries: number;
  first_broken: number | null;
  problem: string | null;
  head: AuditHead | null;
  anchor: AuditHead | null;
}

export interface SessionRow {
  id: string;
  token_id: string;
  token_name: string;
  browser: string | null;
  created_at: Iso;
  last_used_at: Iso | null;
  expires_at: Iso;
  current: boolean;
}
