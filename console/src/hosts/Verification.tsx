// The challenges of a host's GPUs: task, time against its bound, result, and the next due time.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { verification as verificationQuery } from "../api/queries.ts";
import type { CardVerification, Gpu, GpuPage, Host, PastVerification, Verification } from "../api/types.ts";
import { bytes, count, DASH, measured, plain, words } from "../parts/format.ts";
import { Command, Facts, Id, Loaded, Panel } from "../parts/page.tsx";
import { called } from "../parts/shell.ts";
import { State, When } from "../parts/state.tsx";
import { toneOf } from "../parts/states.ts";
import { moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";

const Result = ({ outcome }: { outcome: string }) => <State state={outcome} tone={toneOf(outcome, "challenge")} />;
const seconds = (ms: number | null): string => measured(ms === null ? null : ms / 1000, "s", 2);

/** The time of a challenge in words: a class that is not calibrated refuses nobody. */
function paceWords(card: CardVerification): string {
  if (card.span_ms === null) return DASH;
  const bound = card.bound_ms === null ? "" : ` of at most ${seconds(card.bound_ms)}`;
  return `${seconds(card.span_ms)}${bound}`;
}

const calibratedWords = (card: CardVerification): string =>
  card.calibrated === null
    ? DASH
    : card.calibrated
      ? `calibrated: ${plain(card.times)}`
      : "observed: no card of its class was measured, so the time decides nothing";

const BESIDE: Record<string, string> = {
  alone: "no other card of its class was challenged with it",
  untold: "cannot be told from their times",
  together: "worked at once, in the same second",
  apart: "worked one after another, as one card that answers for several",
};
const besideWords = (card: CardVerification): string =>
  card.together === null
    ? DASH
    : `${(card.cards ?? 1) > 1 ? `${count(card.cards)} cards: ` : ""}${BESIDE[card.together] ?? plain(card.together)}`;

const memoryWords = (card: CardVerification): string => {
  if (card.memory === null) return "not filled";
  const filled =
    `${bytes(card.memory_filled_bytes)} of ${bytes(card.memory_claimed_bytes)} filled in ` +
    `${seconds(card.memory_span_ms)}`;
  const places =
    card.memory_wrong === null ? "" : `, ${count(card.memory_wrong)} of ${count(card.memory_probes)} places wrong`;
  return `${words(card.memory)}: ${filled}${places}`;
};

const workWords = (card: CardVerification): string =>
  card.size === null
    ? DASH
    : `${count(card.rounds)} × products of ${count(card.size)} × ${count(card.size)} ` +
      `matrices, ${count(card.openings)} entries looked at`;

/** The newest challenge of one GPU, and the earlier ones. */
export function CardEvidence({ gpu: { host_id: hostId, host_name, uuid, simulated } }: { gpu: GpuPage }) {
  const query = useQuery(verificationQuery(hostId));
  return (
    <Loaded query={query} lines={4}>
      {(whole) => {
        const card = whole.gpus.find((one) => one.gpu_uuid === uuid);
        if (!card) return <Never host={called({ id: hostId, name: host_name })} whole={whole} simulated={simulated} />;
        const past = whole.past.filter((one) => one.gpu_uuid === uuid && one.verification_id !== card.verification_id);
        return (
          <>
            <Facts
              rows={[
                ["Result", <Result key="r" outcome={card.outcome} />],
                ["In words", plain(card.detail)],
                ["When", <When key="w" at={card.at} />],
                ["Asked", workWords(card)],
                ["Time", paceWords(card)],
                ["Bound", calibratedWords(card)],
                ["Memory", memoryWords(card)],
                ["Beside others", besideWords(card)],
                ["Device", plain(card.device)],
                ["Driver", plain(card.driver)],
                ["Challenge", <Id key="i" id={card.verification_id} />],
                ["Nonce", <Id key="n" id={card.nonce} />],
                ["Next due", <Due key="d" whole={whole} />],
              ]}
            />
            {past.length > 0 && <Past rows={past} />}
          </>
        );
      }}
    </Loaded>
  );
}

function Past({ rows }: { rows: readonly PastVerification[] }) {
  return (
    <>
      <Text size="sm" fw={600} mt={10}>
        Earlier challenges
      </Text>
      <Facts
        rows={rows.slice(0, 12).map((one) => [
          one.outcome,
          <span key={one.verification_id}>
            <When at={one.at} />: {plain(one.detail)}
          </span>,
        ])}
      />
    </>
  );
}

const Due = ({ whole }: { whole: Verification }) =>
  whole.due_at === null ? <>as soon as a GPU is free and the host is connected</> : <When at={whole.due_at} />;

function Never({ host, whole, simulated }: { host: string; whole: Verification; simulated: boolean }) {
  return (
    <>
      <Text size="sm" className="wr-quiet wr-break">
        {simulated
          ? plain(whole.words)
          : "Not challenged yet. It is asked as soon as it is free; its owner can ask now:"}
      </Text>
      {!simulated && <Command text={`windrow host verify ${host}`} label="next command" />}
    </>
  );
}

/** All cards of a host beside each other. */
export function HostVerification({ host }: { host: Host }) {
  const query = useQuery(verificationQuery(host.id));
  if (host.gpus.length === 0) return null;
  return (
    <Panel title="Verification">
      <Loaded query={query} lines={4}>
        {(whole) => (
          <>
            <Facts
              rows={[
                ["State", <State key="s" state={whole.state} />],
                ["In words", plain(whole.words)],
                ["Next due", host.simulated ? DASH : <Due key="d" whole={whole} />],
                ["Tries since a pass", count(whole.tries)],
              ]}
            />
            {whole.gpus.length > 0 ? (
              <Cards host={host} whole={whole} />
            ) : (
              <Never host={called(host)} whole={whole} simulated={host.simulated} />
            )}
          </>
        )}
      </Loaded>
    </Panel>
  );
}

interface Card {
  gpu: Gpu;
  card: CardVerification | undefined;
}

const CARD_COLUMNS: readonly Column<Card>[] = [
  {
    id: "gpu",
    name: "GPU",
    value: ({ gpu }) => gpu.index,
    cell: ({ gpu }) => (
      <Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: gpu.uuid }}>
        GPU {count(gpu.index)}
      </Link>
    ),
  },
  {
    id: "outcome",
    name: "Result",
    value: ({ card }) => card?.outcome,
    cell: ({ card }) => (card ? <Result outcome={card.outcome} /> : DASH),
  },
  { ...moment<Card>("at", "When", ({ card }) => card?.at), width: 96 },
  { id: "span", name: "Time", value: ({ card }) => (card ? paceWords(card) : null) },
  {
    id: "bound",
    name: "Bound",
    value: ({ card }) => (card && card.calibrated !== null ? (card.calibrated ? "calibrated" : "observed") : null),
  },
  {
    id: "detail",
    name: "Says",
    value: ({ card }) => card?.detail,
    cell: ({ card }) => (card ? plain(card.detail) : "Not challenged yet."),
  },
];

function Cards({ host, whole }: { host: Host; whole: Verification }) {
  const known = new Map(whole.gpus.map((one) => [one.gpu_uuid, one] as const));
  return (
    <DataTable
      of={["challenge", "challenges"]}
      columns={CARD_COLUMNS}
      id={({ gpu }) => gpu.uuid}
      rows={host.gpus.map((gpu) => ({ gpu, card: known.get(gpu.uuid) }))}
      bare
      empty={null}
    />
  );
}
