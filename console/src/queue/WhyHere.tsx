// Shows why work runs on its host, from the record of that decision, and why not on another host.
import { Autocomplete, Button, Group, Stack, Text } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { explain, hostsFound } from "../api/queries.ts";
import type { Explained } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Loaded, ProblemNote, Reasons, TYPING_MS } from "../parts/page.tsx";
import { When } from "../parts/state.tsx";

/** record: what else is shown of the decision. */
export function WhyHere({ id, record }: { id: string; record?: (told: Explained) => ReactNode }) {
  const query = useQuery(explain(id));
  return (
    <Loaded query={query} lines={3}>
      {(told) => (
        <Stack gap="sm">
          {told.here.length > 0 ? (
            <>
              <Reasons reasons={told.here} />
              {told.decided_at && (
                <Text size="xs" className="wr-quiet">
                  Decided <When at={told.decided_at} />
                </Text>
              )}
            </>
          ) : (
            <Text size="sm" className="wr-quiet">
              {told.queue ? "It has no place yet." : "No record of this decision is kept."}
            </Text>
          )}
          <WhyNot id={id} />
          {record?.(told)}
        </Stack>
      )}
    </Loaded>
  );
}

export function WhyNot({ id }: { id: string }) {
  const [host, type] = useState("");
  const [asked, ask] = useState("");
  const [typed] = useDebouncedValue(host.trim(), TYPING_MS);
  const found = useQuery({ ...hostsFound(typed), enabled: typed !== "" }).data?.items ?? [];
  const query = useQuery({ ...explain(id, asked), enabled: asked !== "" });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        ask(host.trim());
      }}
    >
      <Group align="end" gap="xs" wrap="nowrap">
        <Autocomplete
          size="xs"
          label="Why not on another host?"
          placeholder="name of a host"
          style={{ flex: 1, maxWidth: 320 }}
          data={[...new Set(found.map(({ name }) => name))]}
          filter={({ options }) => options}
          value={host}
          onChange={type}
        />
        <Button type="submit" variant="default" disabled={!host.trim()} loading={query.isLoading}>
          Ask
        </Button>
      </Group>
      <div role="status">
        {query.data?.not_there && (
          <Text size="sm" mt="xs" className="wr-break">
            {plain(query.data.not_there)}{" "}
            <span className="wr-quiet">{query.data.is_recorded ? "As it was decided." : "As it is now."}</span>
          </Text>
        )}
      </div>
      {query.error && <ProblemNote error={query.error} />}
    </form>
  );
}
