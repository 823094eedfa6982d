// The form of a new machine with all its fields; beside it, live, the host that would run it and the price, or the
// reasons against.
import {
  Button,
  Checkbox,
  Group,
  NativeSelect,
  NumberInput,
  SegmentedControl,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useLocation, useSearch } from "@tanstack/react-router";
import { useEffect, useMemo, useState } from "react";
import { put, remove } from "../api/client.ts";
import {
  cluster as clusterQuery,
  host as hostQuery,
  offers as offersQuery,
  plan as planQuery,
  templates as templatesQuery,
} from "../api/queries.ts";
import type { ClusterRequest, Template } from "../api/types.ts";
import { handed } from "../new/handed.ts";
import { perHour, plain } from "../parts/format.ts";
import { AskBeforeLeavingForm } from "../parts/Leaving.tsx";
import { PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { useCreate } from "./create.ts";
import { ImagePanel } from "./ImagePanel.tsx";
import { kindName } from "./kinds.ts";
import { PlaceFields } from "./PlaceFields.tsx";
import { Quote } from "./Quote.tsx";
import {
  asCommand,
  BLANK,
  type Draft,
  type Kind,
  mayIdle,
  NO_LOGIN,
  overHosts,
  shownWith,
  toDraft,
  toRequest,
} from "./request.ts";

/** Where others in the row have no hint, so that all inputs of it stand in one line. */
const HINT_LAST: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];
/** A machine that may be bought waits for its place. */
const TO_BUY_HOURS = "1";
const TEMPLATE = /^[a-z0-9][a-z0-9._-]{0,63}$/;
const KINDS: Record<Kind, string> = {
  box: "One command, or a machine that stays up for you to work in.",
  service: "Serves ports over HTTPS to whoever knows the address.",
  gang: "The same command on every host at once, as torchrun wants it.",
  ray: "A Ray cluster: the command runs beside its head; without one it stays up.",
  dask: "A Dask cluster: the command runs beside its scheduler; without one it stays up.",
};

export function NewClusterPage() {
  const search = useSearch({ from: "/clusters/new" });
  const { handed: number } = useLocation().state;
  const [draft, setDraft] = useState<Draft>(() => ({
    ...BLANK,
    host: search.host ?? "",
    tier: search.tier ?? "",
    hardware: search.hardware === "gpu" ? "gpu" : "cpu",
    simulated: search.simulated === "true",
    gpus: Number(search.gpus) || BLANK.gpus,
    cpus: Number(search.cpus) || BLANK.cpus,
    hours: search.hours ?? "",
    maxPrice: search.max_price ?? "",
    backend: search.backend ?? "",
    spot: search.spot === "true",
    waitHours: search.backend ? TO_BUY_HOURS : "",
    ...handed(number).machine,
  }));
  const [filled, setFilled] = useState(false);
  const [tried, setTried] = useState(false);
  const like = useQuery({ ...clusterQuery(search.like ?? ""), enabled: search.like !== undefined }).data?.request;
  const isLike = like !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: begun with once, when it is known
  useEffect(() => {
    if (like) setDraft({ ...toDraft(like), name: "" });
  }, [isLike]);
  const change = (part: Partial<Draft>) => {
    setFilled(true);
    setDraft((before) => ({ ...before, ...part }));
  };
  const { request, login, faults } = useMemo(() => toRequest(draft), [draft]);
  const sound = Object.keys(faults).length === 0;
  const create = useCreate(request, login, () => change(NO_LOGIN));
  const refused = useQuery({ ...planQuery(request), enabled: false }).data?.refusal;
  // The quote shows this refusal already, with the changes that help.
  const refusedAbove = create.error?.message === refused?.detail;
  const submit = () => {
    setTried(true);
    if (sound) create.mutate();
  };
  return (
    <div className="wr-page">
      <PageHead
        above={
          <Link className="wr-link" to="/clusters">
            Machines
          </Link>
        }
        title="New machine"
      />
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
        noValidate
      >
        <AskBeforeLeavingForm filled={filled} />
        <div className="wr-columns">
          <div className="wr-stack">
            <Templates
              wanted={search.template}
              begin={(template) => {
                setDraft(toDraft(template.request));
                setTried(false);
              }}
            />
            <Form draft={draft} change={change} faults={tried ? faults : {}} />
          </div>
          <aside className="wr-stack">
            <Quote draft={draft} sound={sound} change={change} />
            {create.error && (
              <Panel label="Error">{refusedAbove ? <NotCreated /> : <ProblemNote error={create.error} />}</Panel>
            )}
            <Button type="submit" size="md" loading={create.isPending}>
              Create machine
            </Button>
            {tried && !sound && (
              <Text size="sm" role="alert" className="wr-tone-bad">
                Please fill in: {Object.values(faults).join("; ")}.
              </Text>
            )}
            <Same
              method="POST"
              path="/clusters"
              body={shownWith(request, login)}
              command={asCommand(request, login !== null)}
            />
            <Keep request={request} sound={sound} />
          </aside>
        </div>
      </form>
    </div>
  );
}

/** The account's templates; nothing where there are none. */
function Templates({ wanted, begin }: { wanted?: string | undefined; begin: (template: Template) => void }) {
  const query = useQuery(templatesQuery);
  const client = useQueryClient();
  const [chosen, setChosen] = useState("");
  const forget = useMutation({
    mutationFn: (name: string) => remove(`/templates/${encodeURIComponent(name)}`),
    onSuccess: () => {
      setChosen("");
      void client.invalidateQueries({ queryKey: ["templates"] });
    },
  });
  const found = query.data ?? [];
  const choose = (name: string) => {
    setChosen(name);
    const template = found.find((one) => one.name === name);
    if (template) begin(template);
  };
  const isThere = found.some((one) => one.name === wanted);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the one of the address is taken once, when it is known
  useEffect(() => {
    if (isThere && wanted) choose(wanted);
  }, [isThere, wanted]);
  if (!found.length) return null;
  return (
    <Panel
      title="Begin with"
      actions={
        chosen && (
          <Button variant="subtle" color="gray" loading={forget.isPending} onClick={() => forget.mutate(chosen)}>
            Forget it
          </Button>
        )
      }
    >
      <NativeSelect
        label="Template"
        value={chosen}
        onChange={(event) => choose(event.currentTarget.value)}
        data={[
          { value: "", label: "none" },
          ...found.map((one) => ({ value: one.name, label: `${one.name} · ${kindName(one.request.kind)}` })),
        ]}
      />
      {forget.error && <ProblemNote error={forget.error} />}
    </Panel>
  );
}

/** Keeps what the form says now under a name. */
function Keep({ request, sound }: { request: ClusterRequest; sound: boolean }) {
  const client = useQueryClient();
  const [name, setName] = useState("");
  const keep = useMutation({
    mutationFn: () => put<Template>(`/templates/${encodeURIComponent(name)}`, request),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["templates"] }),
  });
  const fits = TEMPLATE.test(name);
  return (
    <Panel title="Keep as a template">
      <Group align="end" wrap="nowrap" gap="xs">
        <TextInput
          label="Keep it as"
          placeholder="big-ray"
          style={{ flex: 1 }}
          value={name}
          error={name && !fits ? "Lower-case letters, digits, . _ -" : undefined}
          onChange={(event) => {
            setName(event.currentTarget.value);
            keep.reset();
          }}
        />
        <Button variant="default" disabled={!fits || !sound} loading={keep.isPending} onClick={() => keep.mutate()}>
          Keep
        </Button>
      </Group>
      {keep.isSuccess && (
        <Text size="sm" role="status" mt={6}>
          Kept. By command: windrow cluster create --template {name}
        </Text>
      )}
      {keep.error && <ProblemNote error={keep.error} />}
    </Panel>
  );
}

interface FormProps {
  draft: Draft;
  change: (part: Partial<Draft>) => void;
  faults: Partial<Record<keyof Draft, string>>;
}

function Form({ draft, change, faults }: FormProps) {
  const offers = useQuery(offersQuery);
  const tiers = (offers.data ?? [])
    .filter((offer) => offer.simulated === draft.simulated)
    .map((offer) => ({ value: offer.tier, label: `${plain(offer.tier)} · ${perHour(offer.price_per_hour)}` }));
  const field = (name: keyof Draft) => ({
    value: String(draft[name]),
    error: faults[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <div className="wr-stack">
      <Panel title="Workload">
        <Stack gap="sm">
          <SegmentedControl
            aria-label="Kind"
            value={draft.kind}
            onChange={(kind) => change({ kind: kind as Kind })}
            data={Object.keys(KINDS).map((kind) => ({ value: kind, label: kindName(kind) }))}
          />
          <Text size="xs" className="wr-quiet">
            {KINDS[draft.kind]}
          </Text>
          <Textarea
            label="Command"
            description={
              "Runs without a shell; for pipes or variables write sh -c '…'. Empty: the machine stays on until deleted."
            }
            placeholder="python -c 'print(6 * 7)'"
            autosize
            minRows={2}
            maxRows={8}
            {...field("command")}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
            data-autofocus
          />
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
            <TextInput label="Name" placeholder="(generated)" {...field("name")} />
            {overHosts(draft.kind) && (
              <NumberInput
                label="Hosts"
                description="Each gives all that is asked for."
                inputWrapperOrder={HINT_LAST}
                min={1}
                max={64}
                value={draft.hosts}
                onChange={(value) => change({ hosts: Number(value) || 1 })}
              />
            )}
            {draft.kind === "service" && <TextInput label="Ports" placeholder="8080" {...field("ports")} />}
          </SimpleGrid>
          {draft.kind === "box" && (
            <>
              <Textarea
                label="SSH keys"
                description={
                  "Public keys that may log in, a line each, as in id_ed25519.pub. The image brings OpenSSH's server."
                }
                placeholder="ssh-ed25519 AAAA… you@home"
                autosize
                minRows={1}
                maxRows={4}
                {...field("sshKeys")}
                styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
              />
              {!draft.command.trim() && (
                <Checkbox
                  label="Start Jupyter"
                  description="Starts JupyterLab if the image contains it. Only you can open it."
                  checked={draft.notebook}
                  onChange={(event) => change({ notebook: event.currentTarget.checked })}
                />
              )}
            </>
          )}
        </Stack>
      </Panel>
      <Panel title="Hardware">
        <Stack gap="sm">
          <SegmentedControl
            aria-label="Hardware"
            value={draft.hardware}
            onChange={(hardware) => change({ hardware: hardware as Draft["hardware"] })}
            data={[
              { value: "cpu", label: "CPUs" },
              { value: "gpu", label: "GPUs" },
            ]}
          />
          <SimpleGrid cols={{ base: 1, sm: 2, lg: 3 }} spacing="sm">
            {draft.hardware === "gpu" && (
              <NumberInput
                label="GPUs"
                min={1}
                max={64}
                value={draft.gpus}
                onChange={(value) => change({ gpus: Number(value) || 1 })}
              />
            )}
            {draft.hardware === "gpu" && <TextInput label="Model" placeholder="any" {...field("gpuModel")} />}
            {draft.hardware === "gpu" && (
              <TextInput
                label="GPU memory from (GiB)"
                placeholder="any"
                inputMode="decimal"
                {...field("gpuMemoryGib")}
              />
            )}
            <NumberInput
              label="CPUs"
              min={1}
              max={1024}
              value={draft.cpus}
              onChange={(value) => change({ cpus: Number(value) || 1 })}
            />
            <TextInput label="Memory from (GiB)" placeholder="any" inputMode="decimal" {...field("memoryGib")} />
            <NativeSelect
              label="Tier"
              data={[
                { value: "", label: "any" },
                ...tiers,
                ...(draft.tier && !tiers.some((tier) => tier.value === draft.tier)
                  ? [{ value: draft.tier, label: draft.tier }]
                  : []),
              ]}
              {...field("tier")}
            />
            <TextInput label="Price per hour, at most" placeholder="any" inputMode="decimal" {...field("maxPrice")} />
          </SimpleGrid>
          <Checkbox
            label="Rehearse on simulated hosts"
            description={
              "Nothing is computed there; output and readings are made up. Without this only real hosts serve."
            }
            checked={draft.simulated}
            onChange={(event) => change({ simulated: event.currentTarget.checked })}
          />
          {draft.host && <PinnedHost id={draft.host} clear={() => change({ host: "" })} />}
        </Stack>
      </Panel>
      <PlaceFields
        draft={draft}
        change={(part) => change(part.backend && !draft.waitHours ? { ...part, waitHours: TO_BUY_HOURS } : part)}
        faults={faults}
      />
      <Panel title="Limits">
        <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="sm">
          <TextInput label="Maximum run time (hours)" placeholder="no limit" inputMode="decimal" {...field("hours")} />
          <TextInput label="Budget" placeholder="no limit" inputMode="decimal" {...field("budget")} />
          <TextInput
            label="Wait for a place (hours)"
            description="Empty: refused where no host is free now."
            inputWrapperOrder={HINT_LAST}
            placeholder="do not wait"
            inputMode="decimal"
            {...field("waitHours")}
          />
          {mayIdle(draft) && (
            <TextInput
              label="Stop when unused for (minutes)"
              description="No command, file or tunnel for so long."
              inputWrapperOrder={HINT_LAST}
              placeholder="no limit"
              inputMode="decimal"
              {...field("idleMinutes")}
            />
          )}
        </SimpleGrid>
      </Panel>
      <ImagePanel draft={draft} change={change} faults={faults} hosts={overHosts(draft.kind) ? draft.hosts : 1} />
    </div>
  );
}

function NotCreated() {
  return (
    <Text size="sm" role="alert" p="md" style={{ borderLeft: "3px solid var(--wr-bad)" }}>
      Nothing was created: no host fits. The quote says why.
    </Text>
  );
}

function PinnedHost({ id, clear }: { id: string; clear: () => void }) {
  const host = useQuery(hostQuery(id));
  return (
    <Group gap="xs">
      <Text size="sm">
        Only on{" "}
        <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: id }}>
          {plain(host.data?.name ?? id)}
        </Link>
      </Text>
      <Button variant="subtle" color="gray" onClick={clear}>
        Any host
      </Button>
    </Group>
  );
}
