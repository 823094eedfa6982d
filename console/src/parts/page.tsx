// The building blocks of every page: heading, panel, facts, commands to copy, empty and error states.
import { ActionIcon, Button, CopyButton, Group, Skeleton, Stack, Text, Title, Tooltip } from "@mantine/core";
import type { ReactNode } from "react";
import { ApiProblem } from "../api/client.ts";
import type { Reason } from "../api/types.ts";
import { amount, DASH, isTiny, plain, shortId } from "./format.ts";
import { CheckIcon, CopyIcon } from "./icons.tsx";
import { aboutText, grouped } from "./problems.ts";

export function PageHead({
  title,
  beside,
  actions,
  above,
}: {
  title: ReactNode;
  beside?: ReactNode;
  actions?: ReactNode;
  above?: ReactNode;
}) {
  return (
    <header style={{ marginBottom: 16 }}>
      {above && (
        <Text size="sm" className="wr-quiet" mb={2}>
          {above}
        </Text>
      )}
      <Group justify="space-between" align="center" gap="md">
        <Group gap="sm" align="center">
          <Title order={1} className="wr-break">
            {title}
          </Title>
          {beside}
        </Group>
        {actions && (
          <Group gap="xs" className="wr-no-print">
            {actions}
          </Group>
        )}
      </Group>
    </header>
  );
}

export function Panel({
  title,
  actions,
  children,
  bare = false,
  label,
}: {
  title?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
  bare?: boolean;
  label?: string;
}) {
  return (
    <section className="wr-panel" aria-label={label ?? (typeof title === "string" ? title : undefined)}>
      {title && (
        <div className="wr-panel-head">
          <h2>{title}</h2>
          {actions && <Group gap="xs">{actions}</Group>}
        </div>
      )}
      {bare ? children : <div className="wr-panel-body">{children}</div>}
    </section>
  );
}

export function Facts({ rows }: { rows: readonly (readonly [string, ReactNode])[] }) {
  return (
    <dl className="wr-facts">
      {rows.map(([name, value]) => (
        <div key={name} style={{ display: "contents" }}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** The facts that are known: what does not exist has no row. */
export const known = (rows: readonly (readonly [string, ReactNode])[]) =>
  rows.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== DASH);

/** After the last key, before a form asks what would come of it. */
export const TYPING_MS = 350;

export function Figure({ label, value, note }: { label: string; value: ReactNode; note?: ReactNode }) {
  return (
    <div>
      <div className="wr-figure-value">{value}</div>
      <div className="wr-figure-label">
        {label}
        {note && <> · {note}</>}
      </div>
    </div>
  );
}

/** An amount as a large figure; of a tiny one the exact amount is in the tooltip. */
export function Amount({ text, unit }: { text: string | null | undefined; unit?: string }) {
  const end = unit ? ` ${plain(unit)}` : "";
  return isTiny(text) ? <span title={`${text}${end}`}>less than 0.0001{end}</span> : `${amount(text)}${end}`;
}

export function Id({ id }: { id: string | null | undefined }) {
  if (!id) return <>{shortId(id)}</>;
  return (
    <CopyButton value={id} timeout={1500}>
      {({ copied, copy }) => (
        <Tooltip label={copied ? "Copied" : `${plain(id)}: click to copy`} multiline maw={420}>
          <button
            type="button"
            className="wr-mono wr-id"
            onClick={(event) => {
              event.stopPropagation();
              copy();
            }}
            aria-label={`Copy ${plain(shortId(id))}`}
          >
            {plain(shortId(id))}
          </button>
        </Tooltip>
      )}
    </CopyButton>
  );
}

/** A command to paste, whole, with a button that copies it. */
export function Command({ text, label = "command" }: { text: string; label?: string }) {
  return (
    <div className="wr-command">
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
      <CopyButton value={text} timeout={1500}>
        {({ copied, copy }) => (
          <Tooltip label={copied ? "Copied" : "Copy"}>
            <ActionIcon onClick={copy} aria-label={`Copy ${label}`} size="sm">
              {copied ? <CheckIcon size={14} /> : <CopyIcon size={14} />}
            </ActionIcon>
          </Tooltip>
        )}
      </CopyButton>
    </div>
  );
}

/** Nothing here yet, why, and what to type next. */
export function Empty({
  title,
  children,
  command,
  action,
}: {
  title: string;
  children?: ReactNode;
  command?: string;
  action?: ReactNode;
}) {
  return (
    <Stack gap="xs" py={28} px="md" maw={620} mx="auto" data-testid="empty">
      <Text fw={600}>{title}</Text>
      {children && (
        <Text size="sm" className="wr-quiet">
          {children}
        </Text>
      )}
      {command && <Command text={command} label="next command" />}
      {action && <Group gap="xs">{action}</Group>}
    </Stack>
  );
}

export function ProblemNote({ error, retry }: { error: unknown; retry?: (() => void) | undefined }) {
  const problem = error instanceof ApiProblem ? error.problem : null;
  return (
    <Stack gap={4} py="md" px="md" role="alert" style={{ borderLeft: "3px solid var(--wr-bad)" }}>
      <Text fw={600} size="sm">
        {problem?.title ?? "Something failed in this page"}
      </Text>
      <Text size="sm" className="wr-break">
        {plain(problem?.detail ?? (error instanceof Error ? error.message : String(error)))}
      </Text>
      {problem?.reasons.length ? <Grouped reasons={problem.reasons} /> : null}
      {problem && (
        <Text size="xs" className="wr-quiet wr-break">
          <a className="wr-underlined wr-mono" href={`/docs/errors#${problem.code}`} target="_blank" rel="noopener">
            {problem.code}
          </a>
          {problem.subject && <> · {plain(problem.subject)}</>}
          {problem.request_id && (
            <>
              {" "}
              · request <span className="wr-mono">{problem.request_id}</span>
            </>
          )}
          {problem.retryable && <> · may work if tried again</>}
        </Text>
      )}
      {retry && (
        <Group>
          <Button variant="default" onClick={retry}>
            Try again
          </Button>
        </Group>
      )}
    </Stack>
  );
}

export function Reasons({ reasons }: { reasons: readonly string[] }) {
  return (
    <ul className="wr-reasons">
      {reasons.map((reason, index) => (
        <li key={index} className="wr-break">
          {plain(reason)}
        </li>
      ))}
    </ul>
  );
}

const GROUPS_SHOWN = 8;

/** Reasons of fields or hosts: each said once, with all that it is about. */
export function Grouped({ reasons }: { reasons: readonly Reason[] }) {
  const groups = grouped(reasons);
  return (
    <ul className="wr-reasons">
      {groups.slice(0, GROUPS_SHOWN).map((group) => (
        <li key={group.text} className="wr-break">
          {group.of.length > 0 && <strong title={plain(group.of.join(", "))}>{plain(aboutText(group.of))}: </strong>}
          {plain(group.text)}
        </li>
      ))}
      {groups.length > GROUPS_SHOWN && <li className="wr-quiet">and {groups.length - GROUPS_SHOWN} more reasons</li>}
    </ul>
  );
}

export function Waiting({ lines = 4 }: { lines?: number }) {
  return (
    <Stack gap={10} p="md" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <Skeleton key={index} height={12} width={`${90 - ((index * 17) % 45)}%`} />
      ))}
    </Stack>
  );
}

interface Asking<T> {
  data: T | undefined;
  error: unknown;
  isPending: boolean;
  refetch: () => unknown;
}

/**
 * One way to show a query: a skeleton, the problem in the API's words, or what came; old data outlives a failed
 * refresh.
 */
export function Loaded<T>({
  query,
  children,
  lines,
}: {
  query: Asking<T>;
  children: (data: T) => ReactNode;
  lines?: number;
}) {
  if (query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error) return <ProblemNote error={query.error} retry={() => void query.refetch()} />;
  return <Waiting {...(lines ? { lines } : {})} />;
}
