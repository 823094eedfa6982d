// The home of who rents: balance, what runs and what it costs, what waits, the month, and how to begin again.
import { Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import {
  clusters as clustersQuery,
  jobs as jobsQuery,
  limits as limitsQuery,
  spending,
  templates as templatesQuery,
  usage as usageQuery,
} from "../api/queries.ts";
import type { Cluster, Me, SpendingLimit } from "../api/types.ts";
import { PageButton, useMayOpen } from "../app/PageButton.tsx";
import { usageLines } from "../clusters/usage.ts";
import { DayBars } from "../parts/Bars.tsx";
import { amount, count, duration, money, percent, perHour, plain } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { LinkButton } from "../parts/LinkButton.tsx";
import { Amount, Empty, Figure, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Spark } from "../parts/Spark.tsx";
import { operand } from "../parts/shell.ts";
import { Simulated, State, TestMoney, useNow, When } from "../parts/state.tsx";
import { emptyIn, idleMinutes } from "./home.ts";
import { OpenAlerts } from "./OpenAlerts.tsx";
import { WaitingJobs } from "./WaitingJobs.tsx";

const HOUR_S = 3600;
/** So many machines are looked at for what they use. */
const WATCHED_MOST = 6;
const AGAIN_MOST = 4;
const GPU_USE = { title: "GPU use", unit: "ratio", lines: [["workload_gpu_ratio", "GPU"]] } as const;

const isUp = (cluster: Cluster): boolean =>
  cluster.ended_at === null && ["creating", "running", "degraded", "stopping"].includes(cluster.phase.toLowerCase());

export function RenterHome({ me }: { me: Me }) {
  const reads = useMayOpen("/clusters");
  return (
    <div className="wr-page">
      <PageHead title="Home" />
      {reads ? (
        <Shown me={me} />
      ) : (
        <Panel label="Welcome">
          <Empty title="You rent nothing here yet" action={<LinkButton to="/shop">GPUs & prices</LinkButton>}>
            To rent a machine you need the role of a renter in a project: ask its owner. You see what others share with
            you under Shared with me.
          </Empty>
        </Panel>
      )}
    </div>
  );
}

function Shown({ me }: { me: Me }) {
  const machines = useQuery(clustersQuery.first);
  const project = useQuery(limitsQuery).data?.find((one) => one.kind === "project" && one.id === me.account.id);
  return (
    <div className="wr-stack">
      <OpenAlerts product="rent" />
      <Balance me={me} project={project} />
      <Loaded query={machines} lines={5}>
        {({ items }) => <Running machines={items.filter(isUp)} />}
      </Loaded>
      {/* Asked for meanwhile, and shown once it has its place. */}
      <div className="wr-home" style={machines.isPending ? { display: "none" } : undefined}>
        <Spent />
        <div className="wr-stack">
          <WaitingJobs query={jobsQuery.first} title="Queue" empty="No job waits." />
          <Again machines={machines.data?.items ?? []} />
        </div>
      </div>
    </div>
  );
}

function Balance({ me, project }: { me: Me; project: SpendingLimit | undefined }) {
  const unit = plain(me.balance.currency);
  const left = project ? emptyIn(me.balance.amount, project.held, project.hourly_cost) : null;
  return (
    <Panel label="Balance">
      <div className="wr-figures">
        <Figure label="available" value={money(me.balance.amount, unit)} />
        {project && <Figure label="reserved for what runs" value={money(project.held, unit)} />}
        {project && <Figure label="costs now" value={`${amount(project.hourly_cost)} ${unit}/h`} />}
        {left !== null && <Figure label="until it is used up" value={duration(Math.floor(left / 60) * 60)} />}
        {me.master.currency_is_test && <TestMoney />}
      </div>
      {Number(me.balance.amount) <= 0 && (
        <Text size="sm" mt="sm">
          Nothing can be rented with this balance. Ask an operator of this market for credit: they add it under People
          or with <code>windrow credit add {operand(me.account.name)} 50</code>.
        </Text>
      )}
    </Panel>
  );
}

function Running({ machines }: { machines: readonly Cluster[] }) {
  const make = (
    <Group gap="xs">
      <PageButton to="/new" icon={<PlusIcon />}>
        New machine
      </PageButton>
      <PageButton to="/new" search={{ what: "job" }} icon={<PlusIcon />} isQuiet>
        New job
      </PageButton>
    </Group>
  );
  return (
    <Panel
      title={machines.length ? `Running (${count(machines.length)})` : "Running"}
      label="Running"
      actions={
        <Link className="wr-link" to="/clusters">
          All machines
        </Link>
      }
      bare
    >
      {machines.length ? (
        <ul className="wr-lines">
          {machines.map((machine, index) => (
            <Machine key={machine.id} machine={machine} isWatched={index < WATCHED_MOST && machine.request.gpus > 0} />
          ))}
        </ul>
      ) : (
        <Empty title="Nothing runs now" command="windrow run -- python -c 'print(6 * 7)'" action={make}>
          Rent a machine to work on, or send a job that runs to its end. Here, or from a terminal:
        </Empty>
      )}
    </Panel>
  );
}

/** "4x H100" */
function hardware({ request, tier }: Cluster): string {
  const model = plain(request.gpu_model ?? tier?.split("/")[0] ?? "GPU").toUpperCase();
  const of = request.gpus > 0 ? `${request.gpus}x ${model}` : `${request.cpus} CPU`;
  return request.hosts > 1 ? `${request.hosts} hosts of ${of}` : of;
}

function Machine({ machine, isWatched }: { machine: Cluster; isWatched: boolean }) {
  return (
    <li>
      <State state={machine.phase} reason={machine.problem ?? machine.reason} />
      <span className="wr-break wr-machine">
        <Link className="wr-link wr-underlined" to="/clusters/$clusterId" params={{ clusterId: machine.id }}>
          {plain(machine.name)}
        </Link>
        {machine.request.simulated && <Simulated />}
        <span className="wr-quiet">{hardware(machine)}</span>
        {isWatched && <Use machine={machine} />}
      </span>
      <span className="wr-lines-figures">
        <span>{perHour(machine.price_per_hour)}</span>
        <span className="wr-quiet">
          <Amount text={machine.cost_so_far} /> so far
        </span>
        {machine.ends_at && (
          <span className="wr-quiet">
            ends <When at={machine.ends_at} />
          </span>
        )}
      </span>
      <LinkButton
        to="/clusters/$clusterId"
        params={{ clusterId: machine.id }}
        aria-label={`Open ${plain(machine.name)}`}
      >
        Open
      </LinkButton>
    </li>
  );
}

/** Its GPUs in the last hour, and a word where they do nothing. */
function Use({ machine }: { machine: Cluster }) {
  const found = useQuery(usageQuery(machine.id, HOUR_S, null)).data;
  const now = useNow();
  const lines = found ? usageLines(GPU_USE, found).map((line) => line.points) : [];
  const points = lines[0] ?? [];
  const last = points.at(-1)?.[1] ?? null;
  if (last === null) return null;
  const idle = idleMinutes(lines, now);
  return (
    <>
      <Spark values={points.map((point) => point[1])} label={`GPU use in the last hour, now ${percent(last)}`} />
      <span>{percent(last)}</span>
      {idle !== null && (
        <span className="wr-tone-warn">
          {idle >= HOUR_S / 60 - 1 ? "GPU not used for an hour or more" : `GPU not used for ${idle} min`}: stop it?
        </span>
      )}
    </>
  );
}

/** The month as the page of usage has it. */
function Spent() {
  const query = useQuery(spending("machine", undefined, false));
  return (
    <Panel
      title="Spent this month"
      actions={
        <Link className="wr-link" to="/usage">
          By machine
        </Link>
      }
    >
      <Loaded query={query} lines={6}>
        {({ spent, today, forecast, limit, currency, days }) => (
          <>
            <div className="wr-figures" style={{ marginBottom: 10 }}>
              <div data-testid="spent-month">
                <Figure label="this month" value={<Amount text={spent} unit={currency} />} />
              </div>
              <Figure label="today (UTC)" value={<Amount text={today} />} />
              {forecast !== null && <Figure label="forecast for the month" value={<Amount text={forecast} />} />}
              {limit !== null && <Figure label="limit a month" value={amount(limit)} />}
            </div>
            <DayBars days={days} unit={plain(currency)} label="Spent by day" />
          </>
        )}
      </Loaded>
    </Panel>
  );
}

/** The machines that were rented last, each name once, and the project's templates. */
function Again({ machines }: { machines: readonly Cluster[] }) {
  const mayRent = useMayOpen("/clusters/new");
  const templates = useQuery({ ...templatesQuery, enabled: mayRent }).data ?? [];
  if (!mayRent) return null;
  const ended = machines.filter((one) => one.ended_at !== null);
  const known = [...new Map([...ended].reverse().map((one) => [one.name, one])).values()]
    .reverse()
    .slice(0, AGAIN_MOST);
  if (known.length + templates.length === 0) return null;
  return (
    <Panel title="Start again">
      <Group gap="xs">
        {templates.slice(0, AGAIN_MOST).map(({ name }) => (
          <LinkButton key={name} to="/clusters/new" search={{ template: name }}>
            {plain(name)} (template)
          </LinkButton>
        ))}
        {known.map((one) => (
          <LinkButton key={one.id} to="/clusters/new" search={{ like: one.id }}>
            {plain(one.name)}
          </LinkButton>
        ))}
      </Group>
      <Text size="xs" className="wr-quiet" mt={8}>
        Opens the form as it was then; you see the price before you rent.
      </Text>
    </Panel>
  );
}
