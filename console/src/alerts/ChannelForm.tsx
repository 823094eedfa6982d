// The form of a channel: where it goes, whose alerts and which, and when it is quiet.
import { Checkbox, Group, NativeSelect, SegmentedControl, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { post, put } from "../api/client.ts";
import { me as meQuery, channels as query } from "../api/queries.ts";
import type { Channel, ChannelMade, ChannelScope } from "../api/types.ts";
import { useChange } from "../parts/change.ts";
import { FormDialog } from "../parts/FormDialog.tsx";
import { faultsOf } from "../parts/faults.ts";
import { plain } from "../parts/format.ts";
import { Same } from "../parts/Same.tsx";
import {
  type ChannelDraft,
  channelCommand,
  channelDraft,
  channelFaults,
  KIND_NAMES,
  SCOPE_NAMES,
  scopesFor,
  settingsFrom,
} from "./channels.ts";

const FIELDS = ["name", "target", "scope", "rules", "digest_minutes", "quiet", "time_zone"];
const PATH = "/channels";
export const channelPath = (id: string): string => `${PATH}/${encodeURIComponent(id)}`;

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const TARGETS: Record<Channel["kind"], readonly [label: string, placeholder: string, about: string]> = {
  mail: ["Mail address", "ada@example.org", "Of a member of the organisation; operators may name any."],
  webhook: ["URL", "https://example.org/hook", "Messages are signed; the secret is shown once."],
  apprise: ["URL of the chat", "slack://...", "As apprise writes it: Slack, Teams, PagerDuty, ntfy and others."],
};

interface Props {
  /** Without it: a new one. */
  channel?: Channel;
  close: () => void;
  /** Told of a new one, whose secret is shown once. */
  made: (made: ChannelMade) => void;
}

export function ChannelForm({ channel, close, made }: Props) {
  const me = useQuery(meQuery).data;
  const scopes = scopesFor(me?.roles ?? [], me?.user != null);
  const [draft, setDraft] = useState<ChannelDraft>(() => channelDraft(channel, ZONE));
  const change = (part: Partial<ChannelDraft>) => setDraft({ ...draft, ...part });
  const scope = draft.scope ?? scopes[0] ?? "me";
  const faults = channelFaults(draft, channel === undefined);
  const settings = settingsFrom(draft, channel?.is_enabled ?? true);
  const body = channel ? settings : { ...settings, kind: draft.kind, target: draft.target.trim(), scope };
  const isSecret = !channel && draft.kind === "apprise";
  const path = channel ? channelPath(channel.id) : PATH;
  const act = useChange(async () => (channel ? await put(path, body) : made(await post<ChannelMade>(path, body))), {
    lists: [query],
    said: `The channel ${plain(settings.name)} is saved`,
    close,
  });
  const told = { ...faultsOf(act.error), ...faults, name: faultsOf(act.error).name };
  return (
    <FormDialog
      title={channel ? `Edit ${plain(channel.name)}` : "Add a channel"}
      close={close}
      act={act}
      ready={Object.keys(faults).length === 0}
      fields={FIELDS}
      submit="Save the channel"
    >
      {!channel && <Where draft={draft} faults={told} scope={scope} scopes={scopes} change={change} />}
      <TextInput
        label="Name"
        placeholder="lab"
        maxLength={64}
        value={draft.name}
        error={told.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
      />
      <Which draft={draft} faults={told} change={change} />
      <Same
        method={channel ? "PUT" : "POST"}
        path={path}
        body={isSecret ? { ...body, target: "YOUR_URL" } : body}
        command={channel ? undefined : channelCommand(draft, scope)}
      />
    </FormDialog>
  );
}

interface PartProps {
  draft: ChannelDraft;
  faults: ReturnType<typeof channelFaults>;
  change: (part: Partial<ChannelDraft>) => void;
}

function Where({ draft, faults, scope, scopes, change }: PartProps & { scope: ChannelScope; scopes: ChannelScope[] }) {
  const [label, placeholder, about] = TARGETS[draft.kind];
  return (
    <>
      <SegmentedControl
        aria-label="Kind"
        value={draft.kind}
        onChange={(kind) => change({ kind: kind as ChannelDraft["kind"] })}
        data={Object.entries(KIND_NAMES).map(([value, name]) => ({ value, label: name }))}
      />
      <TextInput
        label={label}
        description={about}
        placeholder={placeholder}
        autoComplete="off"
        maxLength={2000}
        value={draft.target}
        error={draft.target !== "" && faults.target}
        onChange={(event) => change({ target: event.currentTarget.value })}
        data-autofocus
      />
      <NativeSelect
        label="Alerts of"
        value={scope}
        error={faults.scope}
        onChange={(event) => change({ scope: event.currentTarget.value as ChannelScope })}
        data={scopes.map((value) => ({ value, label: SCOPE_NAMES[value] }))}
      />
    </>
  );
}

function Which({ draft, faults, change }: PartProps) {
  return (
    <>
      <Group grow align="flex-start" gap="sm">
        <NativeSelect
          label="Severity"
          value={draft.minSeverity}
          onChange={(event) => change({ minSeverity: event.currentTarget.value as ChannelDraft["minSeverity"] })}
          data={[
            { value: "ticket", label: "All" },
            { value: "page", label: "Urgent only" },
          ]}
        />
        <TextInput
          label="Rules"
          placeholder="job.* budget.*"
          value={draft.rules}
          error={faults.rules}
          onChange={(event) => change({ rules: event.currentTarget.value })}
        />
      </Group>
      {draft.kind !== "webhook" && (
        <TextInput
          label="Send together every (minutes)"
          description="What can wait; urgent alerts go at once. Empty: each at once."
          inputMode="numeric"
          value={draft.digest}
          error={faults.digest ?? faults.digest_minutes}
          onChange={(event) => change({ digest: event.currentTarget.value })}
        />
      )}
      <Checkbox
        label="Quiet hours: only urgent alerts are sent in them"
        checked={draft.isQuiet}
        onChange={(event) => change({ isQuiet: event.currentTarget.checked })}
      />
      {draft.isQuiet && (
        <>
          <Group grow align="flex-start" gap="sm">
            <TextInput
              label="From"
              type="time"
              value={draft.begin}
              onChange={(event) => change({ begin: event.currentTarget.value })}
            />
            <TextInput
              label="To"
              type="time"
              value={draft.end}
              error={faults.quiet}
              onChange={(event) => change({ end: event.currentTarget.value })}
            />
          </Group>
          <NativeSelect
            label="Time zone"
            value={draft.zone}
            error={faults.time_zone}
            onChange={(event) => change({ zone: event.currentTarget.value })}
            data={[...new Set([draft.zone, ZONE, "UTC"])]}
          />
        </>
      )}
    </>
  );
}
