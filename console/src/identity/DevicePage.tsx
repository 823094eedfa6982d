// The page where somebody who is signed in approves or refuses a device that wants to sign in (`windrow login URL`).
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { post } from "../api/client.ts";
import { me as meQuery } from "../api/queries.ts";
import type { Device } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Facts, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { When } from "../parts/state.tsx";
import { codeText, isCode } from "./account.ts";
import { roleNames } from "./roles.ts";
import { nameOf } from "./session.ts";

export function DevicePage() {
  const search = useSearch({ from: "/device" });
  const [typed, setTyped] = useState(() => codeText(search.code ?? ""));
  const look = useMutation({ mutationFn: () => post<Device>("/device/look", { user_code: typed }) });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isCode(typed)) look.mutate();
  };
  return (
    <div className="wr-page" style={{ maxWidth: 640 }}>
      <PageHead title="Sign in a device" />
      <Panel label="Device">
        {look.data ? (
          <Decide code={typed} device={look.data} again={look.reset} />
        ) : (
          <form onSubmit={submit} noValidate>
            <Stack gap="sm" align="flex-start">
              <TextInput
                label="Code"
                description="The eight letters that the device shows."
                placeholder="ABCD-EFGH"
                autoComplete="off"
                spellCheck={false}
                maxLength={20}
                value={typed}
                onChange={(event) => setTyped(codeText(event.currentTarget.value))}
                autoFocus
              />
              <Button type="submit" disabled={!isCode(typed)} loading={look.isPending}>
                Continue
              </Button>
              {look.error && <ProblemNote error={look.error} />}
            </Stack>
          </form>
        )}
      </Panel>
    </div>
  );
}

/** Nothing is approved but by its button: a link to this page may come from a stranger. */
function Decide({ code, device, again }: { code: string; device: Device; again: () => void }) {
  const me = useQuery(meQuery).data;
  const act = useMutation({
    mutationFn: (verdict: "approve" | "refuse") => post(`/device/${verdict}`, { user_code: code }),
  });
  if (act.isSuccess)
    return (
      <Text role="status">
        {act.variables === "approve"
          ? `${plain(device.name)} is signed in. You can close this page. To end it: revoke its token under Tokens.`
          : `${plain(device.name)} is refused.`}
      </Text>
    );
  return (
    <Stack gap="sm">
      <Text size="sm">
        Approve only if you began this yourself and the device shows the code <strong>{code}</strong>.
      </Text>
      <Facts
        rows={[
          ["Device", plain(device.name)],
          ["Asks from", plain(device.address)],
          ["Asked", <When key="a" at={device.created_at} />],
          ["Would act as", me ? plain(nameOf(me)) : ""],
          ["In the project", plain(device.project)],
          ["With the roles", roleNames(device.roles)],
        ]}
      />
      {act.error && <ProblemNote error={act.error} />}
      <Group>
        <Button onClick={() => act.mutate("approve")} loading={act.isPending && act.variables === "approve"}>
          Approve
        </Button>
        <Button
          variant="default"
          onClick={() => act.mutate("refuse")}
          loading={act.isPending && act.variables === "refuse"}
        >
          Refuse
        </Button>
        <Button variant="subtle" color="gray" onClick={again} disabled={act.isPending}>
          Another code
        </Button>
      </Group>
    </Stack>
  );
}
