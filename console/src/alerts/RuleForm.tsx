// The form of a rule of one's own, with what it would have told in the last 7 days.
import { Autocomplete, Group, NativeSelect, SegmentedControl, Stack, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { post, put } from "../api/client.ts";
import { ALERT_KEYS, rulePreview, alertRules as rulesQuery } from "../api/queries.ts";
import type { BuiltInRule, OwnRule, OwnRuleRequest, RulePreview } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf, isAtFields } from "../parts/faults.ts";
import { count, DAY_S, duration, exact, plain } from "../parts/format.ts";
import { ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { useNow } from "../parts/state.tsx";
import {
  COMPARISONS,
  DURATIONS,
  draftOf,
  eventKinds,
  METRICS,
  NEW_RULE,
  onStrip,
  type RuleDraft,
  ruleCommand,
  ruleFrom,
  SEVERITY_NAMES,
  unitOf,
} from "./alerts.ts";

const FIELDS = ["name", "metric", "event", "scope", "threshold", "comparison", "duration_s"];
const PATH = "/alert-rules";
export const rulePath = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;
export const ruleLists = [rulesQuery, ...ALERT_KEYS.map((queryKey) => ({ queryKey }))];

interface Props {
  /** Without it: a new one. */
  rule?: OwnRule;
  signals: readonly BuiltInRule[];
  close: () => void;
}

export function RuleForm({ rule, signals, close }: Props) {
  const [draft, setDraft] = useState<RuleDraft>(rule ? draftOf(rule) : NEW_RULE);
  const { body, faults } = ruleFrom(draft);
  const path = rule ? rulePath(rule.id) : PATH;
  const act = useChange(() => (rule ? put(path, body) : post(path, body)), {
    lists: ruleLists,
    said: `The rule ${plain(body.name)} is saved`,
    close,
  });
  const { name: _, ...others } = faults;
  const preview = useRulePreview(Object.keys(others).length === 0 ? body : null);
  const told = { ...faultsOf(preview?.error), ...faultsOf(act.error) };
  return (
    <FormDialog
      title={rule ? `Edit ${plain(rule.name)}` : "Add a rule"}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={FIELDS}
      submit="Save the rule"
    >
      <Fields
        draft={draft}
        faults={{ ...told, ...(told.scope ? { where: told.scope } : {}), ...faults, name: told.name }}
        kinds={eventKinds(signals.map((one) => one.signal))}
        change={(part) => setDraft({ ...draft, ...part })}
      />
      <Preview query={preview} />
      <Same method={rule ? "PUT" : "POST"} path={path} body={body} command={rule ? undefined : ruleCommand(body)} />
    </FormDialog>
  );
}

interface FieldsProps {
  draft: RuleDraft;
  faults: Partial<Record<string, string | undefined>>;
  kinds: string[];
  change: (part: Partial<RuleDraft>) => void;
}

function Fields({ draft, faults, kinds, change }: FieldsProps) {
  const isMetric = draft.of === "metric";
  const durations = [...new Set([...DURATIONS, Number(draft.durationS)])].sort((one, other) => one - other);
  return (
    <>
      <TextInput
        label="Name"
        placeholder="hot"
        maxLength={100}
        value={draft.name}
        error={faults.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
        data-autofocus
      />
      <SegmentedControl
        aria-label="What it watches"
        value={draft.of}
        onChange={(of) => change({ of: of as RuleDraft["of"], threshold: of === "event" ? "1" : NEW_RULE.threshold })}
        data={[
          { value: "metric", label: "A metric" },
          { value: "event", label: "Events" },
        ]}
      />
      {isMetric ? (
        <Autocomplete
          label="Metric"
          data={[...METRICS]}
          value={draft.metric}
          error={faults.metric}
          onChange={(metric) => change({ metric })}
        />
      ) : (
        <Autocomplete
          label="Kind of event"
          data={kinds}
          value={draft.event}
          error={faults.event}
          onChange={(event) => change({ event })}
        />
      )}
      <Group grow align="flex-start" gap="sm">
        {isMetric && (
          <NativeSelect
            label="Is"
            value={draft.comparison}
            error={faults.comparison}
            onChange={(event) => change({ comparison: event.currentTarget.value as RuleDraft["comparison"] })}
            data={[...COMPARISONS]}
          />
        )}
        <TextInput
          label={isMetric ? ["Number", unitOf(draft.metric)].filter(Boolean).join(", ") : "Times"}
          inputMode="decimal"
          value={draft.threshold}
          error={faults.threshold}
          onChange={(event) => change({ threshold: event.currentTarget.value })}
        />
        <NativeSelect
          label={isMetric ? "For" : "Within"}
          value={draft.durationS}
          error={faults.duration_s}
          onChange={(event) => change({ durationS: event.currentTarget.value })}
          data={durations.map((seconds) => ({ value: String(seconds), label: duration(seconds) }))}
        />
      </Group>
      <TextInput
        label="Only where"
        description={
          isMetric ? "host, gpu, tier or region. Empty: all hosts." : "host, cluster, job or access by id. Empty: all."
        }
        placeholder="host=gpu-7"
        value={draft.where}
        error={faults.where}
        onChange={(event) => change({ where: event.currentTarget.value })}
      />
      <NativeSelect
        label="Severity"
        value={draft.severity}
        onChange={(event) => change({ severity: event.currentTarget.value as RuleDraft["severity"] })}
        data={(["ticket", "page"] as const).map((value) => ({ value, label: SEVERITY_NAMES[value] }))}
      />
    </>
  );
}

/** body: null while the form is not whole, and then there is no preview. */
function useRulePreview(body: OwnRuleRequest | null) {
  const [settled] = useDebouncedValue(body && JSON.stringify({ ...body, name: "preview" }), TYPING_MS);
  const query = useQuery({
    ...rulePreview(JSON.parse(settled ?? "{}") as OwnRuleRequest),
    enabled: settled !== null,
  });
  return body === null || settled === null ? null : query;
}

function Preview({ query }: { query: ReturnType<typeof useRulePreview> }) {
  return (
    <section className="wr-note wr-note-calm" aria-label="Preview of the last 7 days" aria-live="polite">
      {query === null || isAtFields(query.error, FIELDS) ? (
        <Text size="sm">Fill in the form to see how often it would have fired in the last 7 days.</Text>
      ) : query.error ? (
        <ProblemNote error={query.error} />
      ) : query.data ? (
        <Fired found={query.data} />
      ) : (
        <Waiting lines={2} />
      )}
    </section>
  );
}

const WEEK_S = 7 * DAY_S;
const NAMED_MOST = 4;

function Fired({ found }: { found: RulePreview }) {
  const now = useNow();
  const times = found.count === 1 ? "once" : `${count(found.count)} times`;
  return (
    <Stack gap={6} style={{ flex: 1, minWidth: 0 }}>
      <Text size="sm">
        In the last 7 days it would have fired <strong>{found.count === 0 ? "never" : times}</strong>.
        {!found.complete &&
          " Only a part of it was looked at, since there is so much of it: narrow the rule to see the rest."}
      </Text>
      {found.count > 0 && (
        <svg viewBox="0 0 700 14" width="100%" height={14} preserveAspectRatio="none" aria-hidden="true">
          <rect width={700} height={14} fill="var(--wr-sunken)" />
          {found.firings.map((one, index) => {
            const [from, until] = onStrip(one.at, one.until, now, WEEK_S * 1000);
            return (
              <rect
                key={index}
                x={from * 700}
                width={Math.max(3, (until - from) * 700)}
                height={14}
                fill="var(--wr-bad)"
              />
            );
          })}
        </svg>
      )}
      {found.firings.slice(-NAMED_MOST).map((one, index) => (
        <Text key={index} size="xs" className="wr-quiet wr-break">
          {plain(one.name)}: {exact(one.at)},{" "}
          {one.until === null ? "and still" : `for ${duration((Date.parse(one.until) - Date.parse(one.at)) / 1000)}`}
        </Text>
      ))}
      {found.count > NAMED_MOST && <Text size="xs">The last {NAMED_MOST} are named.</Text>}
    </Stack>
  );
}
