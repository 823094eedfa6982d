// What is wrong with a host or a GPU, first on its page: what happened, who is hit, and the steps that mend it.
import { Button, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { events as eventsQuery, me as meQuery } from "../api/queries.ts";
import type { Condition, Gpu, Host } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { Conditions } from "../parts/Conditions.tsx";
import { plain } from "../parts/format.ts";
import { Command } from "../parts/page.tsx";
import { Subject } from "../parts/Subject.tsx";
import { Shape, When } from "../parts/state.tsx";
import { ACTIONS, type Action, ActionAsked, useAct } from "./HostActions.tsx";
import { type Step, type Trouble, troublesOf } from "./remedies.ts";

/** What was hit may have ended some time before the condition is written down. */
const BEFORE_MS = 5 * 60_000;

interface TroublesProps {
  host: Host;
  found: readonly Condition[];
  cards: readonly Pick<Gpu, "uuid" | "index" | "state" | "state_reason">[];
  /** On the page of a GPU no link leads to it. */
  links?: boolean;
}

export function Troubles({ host, found, cards, links = true }: TroublesProps) {
  const troubles = useMemo(() => troublesOf(host, found, cards), [host, found, cards]);
  const calm = found.filter((one) => one.severity === "info");
  const wrong = troubles.filter((one) => !one.isInfo);
  if (wrong.length === 0 && calm.length === 0) return null;
  return (
    <Stack gap={10} mb={16}>
      {wrong.map((trouble) => (
        <One key={trouble.key} trouble={trouble} host={host} links={links} />
      ))}
      <Conditions found={calm} />
    </Stack>
  );
}

function One({ trouble, host, links }: { trouble: Trouble; host: Host; links: boolean }) {
  const may = mayOperate(useQuery(meQuery).data, host);
  const tone = trouble.steps.some((step) => step.verb === "drain" || step.verb === "verify") ? "bad" : "warn";
  return (
    <section className={`wr-trouble wr-trouble-${tone}`} aria-label={plain(trouble.title)}>
      <h2 className={`wr-tone-${tone}`}>
        <Shape tone={tone} /> {plain(trouble.title)}
      </h2>
      <Text size="sm" className="wr-break">
        {plain(trouble.detail)}
        {trouble.since && (
          <span className="wr-quiet">
            {" "}
            Began <When at={trouble.since} />.
          </span>
        )}{" "}
        {links && trouble.gpu && (
          <Link className="wr-link wr-underlined" to="/gpus/$gpuId" params={{ gpuId: trouble.gpu.uuid }}>
            Open GPU {trouble.gpu.index}
          </Link>
        )}
      </Text>
      <Hit host={host} trouble={trouble} />
      <h3>What to do</h3>
      <ol>
        {trouble.steps.map((step) => (
          <li key={step.text}>
            <Coded text={step.text} />
            {step.command && <Command text={step.command} label="command for the host" />}
            {step.verb && may && <StepButton host={host} step={step} title={trouble.title} />}
          </li>
        ))}
      </ol>
    </section>
  );
}

/** A text with commands in backticks. */
function Coded({ text }: { text: string }) {
  return (
    <span className="wr-break">
      {text.split("`").map((part, index) => (index % 2 ? <code key={index}>{plain(part)}</code> : plain(part)))}
    </span>
  );
}

function StepButton({ host, step, title }: { host: Host; step: Step; title: string }) {
  const [asked, ask] = useState(false);
  const action: Action = ACTIONS[step.verb!];
  const { mutation } = useAct(action, [host]);
  return (
    <div className="wr-step-do">
      <Button loading={mutation.isPending} onClick={() => (action.bare ? mutation.mutate("") : ask(true))}>
        {action.name}
      </Button>
      {mutation.error instanceof Error && (
        <Text size="sm" className="wr-err" role="alert">
          {plain(mutation.error.message)}
        </Text>
      )}
      {asked && <ActionAsked hosts={[host]} action={action} reason={title} close={() => ask(false)} />}
    </div>
  );
}

/** The rentals that use the GPU now, and the rentals that ran when it broke. */
function Hit({ host, trouble: { gpu, since } }: { host: Host; trouble: Trouble }) {
  const from = since === null ? undefined : new Date(Date.parse(since) - BEFORE_MS).toISOString();
  const wanted = { subject: gpu?.uuid ?? host.id, severity: "info" as const, since: from };
  const past = useQuery({ ...eventsQuery(wanted).first, enabled: from !== undefined }).data?.items ?? [];
  const slots = host.slots.filter((slot) => !gpu || slot.gpu_uuid === gpu.uuid || slot.card_uuid === gpu.uuid);
  const now = slots.flatMap((slot) => (slot.cluster_id ? [slot.cluster_id] : []));
  const names = Object.assign({}, ...past.map((event) => event.names)) as Record<string, string>;
  const before = past.flatMap((event) => event.subjects.filter((one) => /^(cluster|job)_/.test(one)));
  const hit = [...new Set([...now, ...before])];
  if (hit.length === 0) return null;
  return (
    <Text size="sm" mt={6}>
      <strong>Affected:</strong>{" "}
      {hit.map((id, index) => (
        <span key={id}>
          {index > 0 && ", "}
          <Subject id={id} name={names[id]} />
          {now.includes(id) && " (has it now)"}
        </span>
      ))}
    </Text>
  );
}
