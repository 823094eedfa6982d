// The page of clouds, for operators: what is owed now, the backends, and what is bought there.
import { Button, Group, Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { backends as backendsQuery, me as meQuery } from "../api/queries.ts";
import type { CloudBackend } from "../api/types.ts";
import { amount, count } from "../parts/format.ts";
import { PlusIcon } from "../parts/icons.tsx";
import { Figure, PageHead } from "../parts/page.tsx";
import { Tabbed } from "../parts/Tabbed.tsx";
import { AddBackend } from "./BackendForms.tsx";
import { Backends } from "./Backends.tsx";
import { owedNow } from "./clouds.ts";
import { Buy, Ended, Living } from "./Purchases.tsx";

export function CloudsPage() {
  const list = useQuery(backendsQuery).data;
  const operates = useQuery(meQuery).data?.roles.includes("operator") ?? false;
  const [asked, ask] = useState<"add" | "buy" | null>(null);
  const close = () => ask(null);
  const acts = operates && list !== undefined && (
    <>
      <Button variant={list.length ? "default" : "filled"} leftSection={<PlusIcon />} onClick={() => ask("add")}>
        Add a backend
      </Button>
      {list.length > 0 && <Button onClick={() => ask("buy")}>Buy a machine</Button>}
    </>
  );
  const now = (
    <Stack gap="md">
      <Backends operates={operates} />
      {(list?.length ?? 0) > 0 && <Living operates={operates} />}
    </Stack>
  );
  return (
    <div className="wr-page">
      <Tabbed
        head={<PageHead title="Clouds" actions={acts} />}
        tabs={[
          { value: "now", name: "Now", content: now },
          { value: "ended", name: "Ended", content: <Ended /> },
        ]}
        above={list && list.length > 0 && <Owed backends={list} />}
      />
      {asked === "add" && <AddBackend close={close} />}
      {asked === "buy" && list && <Buy backends={list} close={close} />}
    </div>
  );
}

function Owed({ backends }: { backends: readonly CloudBackend[] }) {
  return owedNow(backends).map(([currency, owed]) => (
    <Group key={currency} className="wr-figures" mb="md" data-testid="owed">
      <Figure label={`${currency} per hour, now`} value={amount(owed.perHour.toFixed(6), 2)} />
      <Figure label={`${currency} today (UTC)`} value={amount(owed.today.toFixed(6), 2)} />
      <Figure label={`${currency} in all`} value={amount(owed.inAll.toFixed(6), 2)} />
      <Figure label={owed.living === 1 ? "machine is paid for" : "machines are paid for"} value={count(owed.living)} />
    </Group>
  ));
}
