// The reliability of a host with its evidence, and the reasons why it is not rented.
import { Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { standing as standingQuery } from "../api/queries.ts";
import type { Host, Standing, Unrented } from "../api/types.ts";
import { decimal, plain, shortId } from "../parts/format.ts";
import { Facts, Loaded, Panel, Reasons } from "../parts/page.tsx";

export function HostStanding({ host }: { host: Host }) {
  const query = useQuery(standingQuery(host.id));
  return (
    <Loaded query={query} lines={4}>
      {(standing) => (
        <>
          <Reliability standing={standing} />
          <WhyNot host={host} standing={standing} />
        </>
      )}
    </Loaded>
  );
}

function Reliability({ standing: { reliability } }: { standing: Standing }) {
  return (
    <Panel title="Reliability">
      <Facts
        rows={[
          ...(reliability.figure === null ? [] : [["Figure", decimal(reliability.figure, 3)] as const]),
          ["In words", plain(reliability.words)],
          ["Points there", decimal(reliability.good, 1)],
          ["Points missed", decimal(reliability.bad, 1)],
          ["Own faults", decimal(reliability.faults, 1)],
          ["Broken leases", decimal(reliability.aborts, 1)],
        ]}
      />
    </Panel>
  );
}

/** Slots with the same reasons stand together: eight cards of one host mostly have the same. */
function groups(slots: readonly Unrented[]): [readonly string[], Unrented[]][] {
  const found = new Map<string, [readonly string[], Unrented[]]>();
  for (const slot of slots) {
    const key = slot.reasons.join("\n");
    const known = found.get(key);
    if (known) known[1].push(slot);
    else found.set(key, [slot.reasons, [slot]]);
  }
  return [...found.values()];
}

function WhyNot({ host, standing }: { host: Host; standing: Standing }) {
  const index = new Map(host.gpus.map((gpu) => [gpu.uuid, gpu.index] as const));
  const place = (slot: Unrented) => (slot.gpu === null ? Number.POSITIVE_INFINITY : (index.get(slot.gpu) ?? 0));
  const ordered = standing.unrented.toSorted((one, other) => place(one) - place(other) || 0);
  const name = (slot: Unrented) =>
    slot.gpu === null ? (
      "CPUs"
    ) : (
      <Link className="wr-link" to="/gpus/$gpuId" params={{ gpuId: slot.gpu }}>
        GPU {index.get(slot.gpu) ?? shortId(slot.gpu)}
      </Link>
    );
  return (
    <Panel title="Why is it not rented?">
      {standing.unrented.length === 0 && (
        <Text size="sm" className="wr-quiet">
          All GPUs and CPUs of this host are rented.
        </Text>
      )}
      {groups(ordered).map(([reasons, slots]) => (
        <div key={slots[0]!.slot_id}>
          <Text size="sm" fw={600}>
            {slots.map((slot, at) => (
              <span key={slot.slot_id}>
                {at > 0 && ", "}
                {name(slot)}
              </span>
            ))}
          </Text>
          <Reasons reasons={reasons} />
        </div>
      ))}
    </Panel>
  );
}
