// Beside a form: the best places for what it asks, each with its price, and the way to compare them all.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { routed } from "../api/queries.ts";
import type { Recommendation } from "../api/types.ts";
import { amount, plain } from "../parts/format.ts";
import { Panel, TYPING_MS } from "../parts/page.tsx";
import { type Asked, askedRoute, type ChosenPlace, placeOf, soon, usableFirst } from "./routing.ts";

const SHOWN = 3;

/** use: puts a place into the form: by its host where it is one, by the backend that sells it, else by its tier. */
export function Compared({ asked, use }: { asked: Asked; use: (place: ChosenPlace) => void }) {
  const [settled] = useDebouncedValue(asked, TYPING_MS);
  const request = askedRoute(settled);
  const query = useQuery({ ...routed(request), placeholderData: keepPreviousData });
  const found = usableFirst(query.data?.recommendations ?? []);
  if (found.length === 0) return null; // what is asked for does not exist: the quote says so
  return (
    <Panel title="Where to run">
      <Stack gap="sm">
        {found.slice(0, SHOWN).map((one) => (
          <Place key={one.backend} one={one} isChosen={one.backend === query.data?.chosen} use={use} />
        ))}
        <Link
          className="wr-link"
          to="/route"
          search={{ gpus: String(asked.gpus), cpus: String(asked.cpus), gpu: asked.gpu }}
          state={asked.program ? { program: asked.program } : {}}
        >
          {found.length > SHOWN ? `Compare all ${found.length} places` : "Compare by hours and cost"}
        </Link>
      </Stack>
    </Panel>
  );
}

function Place({ one, isChosen, use }: { one: Recommendation; isChosen: boolean; use: (place: ChosenPlace) => void }) {
  const { hourly } = one.cost_estimate;
  return (
    <div>
      <Group justify="space-between" gap="sm" wrap="nowrap" align="baseline">
        <Text size="sm" fw={650} className="wr-break">
          {plain(one.backend)}
        </Text>
        <Text size="sm" style={{ whiteSpace: "nowrap" }}>
          {Number(hourly) === 0 ? "No cost" : `${amount(hourly, 2)} USD/h`}
        </Text>
      </Group>
      <Text size="sm" className="wr-quiet">
        {[
          isChosen ? "recommended" : null,
          `starts in ${soon(one.availability.wait_seconds.p50)}`,
          one.usable ? null : one.buys ? `bought at ${plain(one.buys)}` : "not connected",
        ]
          .filter(Boolean)
          .join(" · ")}
      </Text>
      {(one.usable || one.buys) && (
        <Button size="compact-sm" variant="light" mt={4} onClick={() => use(placeOf(one))}>
          Use {plain(one.backend)}
        </Button>
      )}
    </div>
  );
}
