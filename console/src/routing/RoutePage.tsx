// Where a workload should run: a program and a few figures; beside them, live, every place with its cost and reasons.
import {
  Button,
  Checkbox,
  Collapse,
  FileButton,
  Group,
  NumberInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { keepPreviousData, useMutation, useQuery } from "@tanstack/react-query";
import { Link, useLocation, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery, routed } from "../api/queries.ts";
import type { Recommendation, RouteAnswer, RouteRequest } from "../api/types.ts";
import { amount, plain } from "../parts/format.ts";
import { Empty, PageHead, Panel, ProblemNote, TYPING_MS, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { State } from "../parts/state.tsx";
import { KeptEstimates } from "./KeptEstimates.tsx";
import {
  type Bar,
  BLANK,
  barsOf,
  isTooLong,
  MEASURED_MAX,
  placeOf,
  type RouteDraft,
  saysStart,
  share,
  soon,
  TOO_LONG,
  toCommand,
  toRoute,
  usableFirst,
} from "./routing.ts";

const MONO = { input: { fontFamily: "var(--mantine-font-family-monospace)" } };

export function RoutePage() {
  const search = useSearch({ from: "/route" });
  const { program } = useLocation().state;
  const [draft, setDraft] = useState<RouteDraft>(() => ({
    ...BLANK,
    code: program ?? "",
    gpu: search.gpu ?? "",
    cpus: Number(search.cpus) || BLANK.cpus,
    gpus: search.gpus === undefined ? BLANK.gpus : Number(search.gpus) || 0,
  }));
  const change = (part: Partial<RouteDraft>) => setDraft((before) => ({ ...before, ...part }));
  const made = useMemo(() => toRoute(draft), [draft]);
  const [tooLong, setTooLong] = useState<string>();
  const setCode = (code: string) => {
    setTooLong(isTooLong(code) ? TOO_LONG : undefined);
    if (!isTooLong(code)) change({ code });
  };
  const load = (file: File | null | undefined) => void file?.text().then(setCode);
  const isRenter = useQuery(meQuery).data?.roles.includes("renter") ?? false;
  const field = (name: "hours" | "gpu" | "dataset" | "results" | "limit") => ({
    value: draft[name],
    error: made.faults[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <div className="wr-page">
      <PageHead title="Where to run" />
      <div className="wr-stack">
        <div className="wr-columns wr-columns-even">
          <div className="wr-stack">
            <Panel title="Workload">
              <Stack gap="sm">
                <Textarea
                  label="Program"
                  description="Python. It is read and never run."
                  placeholder={"import torch\n…"}
                  autosize={draft.code.length < MEASURED_MAX}
                  minRows={8}
                  maxRows={20}
                  rows={20}
                  error={tooLong}
                  value={draft.code}
                  onChange={(event) => setCode(event.currentTarget.value)}
                  onDrop={(event) => {
                    const file = event.dataTransfer.files[0];
                    if (!file) return;
                    event.preventDefault();
                    load(file);
                  }}
                  styles={MONO}
                  spellCheck={false}
                />
                <FileButton onChange={load} accept=".py,.txt">
                  {(props) => (
                    <Button variant="default" {...props} style={{ alignSelf: "flex-start" }}>
                      Choose a file
                    </Button>
                  )}
                </FileButton>
                <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
                  <TextInput label="Run time, hours" placeholder="not known" inputMode="decimal" {...field("hours")} />
                  <NumberInput
                    label="GPUs"
                    min={0}
                    max={64}
                    value={draft.gpus}
                    onChange={(value) => change({ gpus: Number(value) || 0 })}
                  />
                  <TextInput label="GPU model" placeholder="any" {...field("gpu")} />
                  <NumberInput
                    label="CPUs"
                    min={1}
                    max={4096}
                    value={draft.cpus}
                    onChange={(value) => change({ cpus: Number(value) || 1 })}
                  />
                  <TextInput label="Data to upload, GB" placeholder="0" inputMode="decimal" {...field("dataset")} />
                  <TextInput
                    label="Results to download, GB"
                    placeholder="0"
                    inputMode="decimal"
                    {...field("results")}
                  />
                  <TextInput label="Cost limit, USD" placeholder="none" inputMode="decimal" {...field("limit")} />
                </SimpleGrid>
                <div>
                  <Text size="sm" fw={500} mb={4} id="optimize">
                    What matters most
                  </Text>
                  <SegmentedControl
                    aria-labelledby="optimize"
                    value={draft.optimize}
                    onChange={(value) => change({ optimize: value as RouteDraft["optimize"] })}
                    data={[
                      { value: "balanced", label: "Balanced" },
                      { value: "cost", label: "Cost" },
                      { value: "speed", label: "Speed" },
                    ]}
                  />
                </div>
                <Checkbox
                  label="It can be interrupted"
                  description="Also spot, which may be taken back; the work goes on elsewhere from its last checkpoint."
                  checked={draft.interruptible}
                  onChange={(event) => change({ interruptible: event.currentTarget.checked })}
                />
                <Same method="POST" path="/route" body={made.request} command={toCommand(made)} />
              </Stack>
            </Panel>
          </div>
          <div className="wr-stack">
            <Answer draft={draft} isRenter={isRenter} />
          </div>
        </div>
        {isRenter && <KeptEstimates />}
      </div>
    </div>
  );
}

function Answer({ draft, isRenter }: { draft: RouteDraft; isRenter: boolean }) {
  const [settled] = useDebouncedValue(draft, TYPING_MS);
  const { request, faults } = useMemo(() => toRoute(settled), [settled]);
  const isSound = Object.keys(faults).length === 0;
  const query = useQuery({ ...routed(request), placeholderData: keepPreviousData, enabled: isSound });
  if (!isSound)
    return (
      <Panel title="Places" label="Places">
        <Empty title="Correct the marked fields">The places are compared again as soon as they are right.</Empty>
      </Panel>
    );
  if (query.error) return <ProblemNote error={query.error} retry={() => void query.refetch()} />;
  if (!query.data) return <Waiting />;
  return <Places answer={query.data} request={request} isRenter={isRenter} />;
}

function Places({ answer, request, isRenter }: { answer: RouteAnswer; request: RouteRequest; isRenter: boolean }) {
  const { recommendations, refused, analysis, chosen } = answer;
  const found = useMemo(() => usableFirst(recommendations), [recommendations]);
  const bars = useMemo(() => barsOf(found), [found]);
  return (
    <>
      {analysis && <Read analysis={analysis} />}
      <Panel title="Places" label="Places">
        {found.length === 0 ? (
          <Empty title="No place can do this work">What each place lacks stands below.</Empty>
        ) : (
          <ol className="wr-places">
            {found.map((one, index) => (
              <Place
                key={one.backend}
                one={one}
                bar={bars[index]!}
                bars={bars}
                isChosen={one.backend === chosen}
                request={request}
                isRenter={isRenter}
              />
            ))}
          </ol>
        )}
        <Text size="sm" className="wr-quiet">
          {found[0]?.cost_estimate.total == null
            ? "Bars: USD for one hour."
            : "Bars: USD for the run; the line is the range of 8 of 10 runs."}
        </Text>
      </Panel>
      {refused.length > 0 && <WhyNot refused={refused} isOpen={found.length === 0} />}
    </>
  );
}

function priceOf({ hourly, total, low, high }: Recommendation["cost_estimate"]): string {
  if (Number(hourly) === 0) return "No cost";
  if (total === null) return `${amount(hourly, 2)} USD/h`;
  return `${amount(total, 2)} USD (${amount(low, 2)} to ${amount(high, 2)})`;
}

function Place({
  one,
  bar,
  bars,
  isChosen,
  request,
  isRenter,
}: {
  request: RouteRequest;
  isRenter: boolean;
  one: Recommendation;
  bar: Bar;
  bars: readonly Bar[];
  isChosen: boolean;
}) {
  const { cost_estimate: cost, availability } = one;
  const of = (value: number) => `${share(value, bars)}%`;
  return (
    <li>
      <Group justify="space-between" gap="sm" wrap="nowrap" align="baseline">
        <Text fw={650} className="wr-break">
          {plain(one.backend)}
        </Text>
        <Text fw={650} style={{ whiteSpace: "nowrap" }}>
          {priceOf(cost)}
        </Text>
      </Group>
      <div className="wr-cost" aria-hidden="true">
        <div style={{ width: of(bar.cost) }} />
        <span style={{ left: of(bar.low), width: `${share(bar.high - bar.low, bars)}%` }} />
      </div>
      <Text size="sm" className="wr-quiet">
        {[
          one.gpu_count > 0 ? `${one.gpu_count} × ${plain(one.gpu ?? "GPU")}` : null,
          plain(one.offer),
          saysStart(one) ? null : `starts in ${soon(availability.wait_seconds.p50)}`,
          `score ${one.score}`,
          `confidence ${cost.confidence}`,
          `price: ${plain(cost.source)}`,
        ]
          .filter(Boolean)
          .join(" · ")}
      </Text>
      {one.pros.map((word) => (
        <Text size="sm" key={word}>
          + {plain(word)}
        </Text>
      ))}
      {one.cons.map((word) => (
        <Text size="sm" key={word}>
          − {plain(word)}
        </Text>
      ))}
      <Group gap="sm" mt={4}>
        {isChosen && <State state="Recommended" tone="ok" />}
        {(one.usable || one.buys) && isRenter && <Use one={one} request={request} />}
      </Group>
    </li>
  );
}

/** The ways on: a job with the program, for which the route is kept, or a cluster. What a bought machine costs is in
 * the book of purchases, so that no route is kept for it. */
function Use({ one, request }: { one: Recommendation; request: RouteRequest }) {
  const navigate = useNavigate();
  const { spot, ...chosen } = placeOf(one);
  const named = Object.fromEntries(Object.entries(chosen).filter(([, value]) => value));
  const place: Record<string, string> = { ...named, ...(spot ? { spot: "true" } : {}) };
  const needs = request.requirements;
  const gpus = one.gpu_count > 0 ? (needs?.gpu_count ?? 1) : 0;
  const more = {
    ...(needs?.cpu_count ? { cpus: String(needs.cpu_count) } : {}),
    ...(needs?.max_cost_usd && Number(one.cost_estimate.hourly) > 0 ? { budget: String(needs.max_cost_usd) } : {}),
  };
  const keep = useMutation({
    mutationFn: async () => (one.buys ? null : await post<RouteAnswer>("/route", { ...request, keep: true })),
    onSuccess: (kept) =>
      void navigate({
        to: "/jobs/new",
        search: { ...place, ...more, gpus: String(gpus), route: kept?.route_id ?? "" },
        state: { ...(request.code ? { program: request.code } : {}) },
      }),
  });
  return (
    <>
      <Button size="compact-sm" variant="light" loading={keep.isPending} onClick={() => keep.mutate()}>
        Run a job here
      </Button>
      <Link className="wr-link" to="/clusters/new" search={{ hardware: gpus > 0 ? "gpu" : "cpu", ...place }}>
        New machine here
      </Link>
      {keep.error && <ProblemNote error={keep.error} />}
    </>
  );
}

function Read({ analysis }: { analysis: NonNullable<RouteAnswer["analysis"]> }) {
  return (
    <Panel title="What the program says">
      {analysis.gpu_memory_gb !== null && (
        <Text size="sm">
          Guessed from the model's size: <strong>{Math.round(analysis.gpu_memory_gb)} GiB</strong> of GPU memory.
        </Text>
      )}
      {analysis.reason ? (
        <Text size="sm">{analysis.reason}</Text>
      ) : analysis.facts.length === 0 ? (
        <Text size="sm" className="wr-quiet">
          Nothing about the hardware it needs.
        </Text>
      ) : (
        <ul style={{ margin: 0, paddingLeft: 18 }}>
          {analysis.facts.map((fact) => (
            <li key={`${fact.name} ${fact.value}`}>
              <Text size="sm">
                {fact.name.replaceAll("_", " ")}: <strong>{plain(fact.value)}</strong>{" "}
                <span className="wr-quiet">
                  line {fact.line}, {fact.confidence}
                </span>
              </Text>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function WhyNot({ refused, isOpen }: { refused: RouteAnswer["refused"]; isOpen: boolean }) {
  const [opened, { toggle }] = useDisclosure(isOpen);
  return (
    <Panel title="Why not">
      <Button variant="subtle" color="gray" onClick={toggle} aria-expanded={opened}>
        {refused.length === 1 ? "1 place that cannot do it" : `${refused.length} places that cannot do it`}
      </Button>
      <Collapse expanded={opened}>
        <Stack gap="xs" mt="xs">
          {refused.map((one) => (
            <div key={one.backend}>
              <Text size="sm" fw={650}>
                {plain(one.backend)} <span className="wr-quiet">{plain(one.offer)}</span>
              </Text>
              <Text size="sm">{plain(one.reason)}</Text>
            </div>
          ))}
        </Stack>
      </Collapse>
    </Panel>
  );
}
