// The page that joins a host: gives one command to paste there, and shows the host when it arrives.
import { Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { post } from "../api/client.ts";
import type { JoinTokenMade } from "../api/types.ts";
import { useFleet } from "../fleet/feed.ts";
import { plain } from "../parts/format.ts";
import { Command, Facts, PageHead, Panel, ProblemNote, Reasons, Waiting } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { Simulated, State, useNow, When } from "../parts/state.tsx";
import { isHereOnly, isPlace, joinLine } from "./joining.ts";

/** As long as the Master lets a join token live. */
const LIFE_S = 15 * 60;

interface Making {
  made: JoinTokenMade;
  /** Hosts that were there before: whoever is new came by this. */
  before: ReadonlySet<string>;
  expiresAt: string;
}

export function JoinPage() {
  const { fleet, loading } = useFleet();
  const [making, setMaking] = useState<Making | null>(null);
  const [typed, setTyped] = useState("");
  const place = typed.trim();
  const isWrong = place !== "" && !isPlace(place);
  const make = useMutation({
    mutationFn: () => post<JoinTokenMade>("/join-tokens", { role: "host", expires_in_s: LIFE_S }),
    onSuccess: (made) =>
      setMaking({
        made,
        before: new Set([...fleet.hosts.keys(), ...fleet.rows.map((row) => row.hostId)]),
        expiresAt: made.expires_at,
      }),
  });
  return (
    <div className="wr-page" style={{ maxWidth: 860 }}>
      <PageHead title="Add a host" />
      <div className="wr-stack">
        <Panel title="1. Get the command">
          <Stack gap="sm">
            <Text size="sm">
              The command works once, for one host, within 15 minutes. The host needs Linux; it connects outward, and no
              port has to be opened.
            </Text>
            <Group>
              <Button
                onClick={() => make.mutate()}
                loading={make.isPending}
                disabled={loading}
                variant={making ? "default" : "filled"}
              >
                {making ? "New command" : "Create command"}
              </Button>
            </Group>
            {make.error && <ProblemNote error={make.error} />}
            <Same
              method="POST"
              path="/join-tokens"
              body={{ role: "host", expires_in_s: LIFE_S }}
              command="windrow token add --join"
            />
          </Stack>
        </Panel>
        {making && (
          <>
            <Panel title="2. Paste it on that host">
              <Stack gap="sm">
                {isHereOnly(making.made) && (
                  <div className="wr-note" role="note">
                    <strong>For this machine only</strong>
                    <span>
                      The Master listens on loopback, so that no other machine reaches it. To let others join, start it
                      again with an address that they reach: <code>windrow up --listen 0.0.0.0 --public ADDRESS</code>.
                    </span>
                  </div>
                )}
                <Command
                  text={joinLine(making.made, window.location.origin, isWrong ? "" : place)}
                  label="join command"
                />
                <TextInput
                  label="Backup address for relays (optional)"
                  description="dns:DOMAIN or https://HOST/PATH: the host asks there if it reaches no relay."
                  value={typed}
                  onChange={(event) => setTyped(event.currentTarget.value)}
                  error={isWrong ? "This is neither dns:DOMAIN nor https://HOST, and is not in the line." : undefined}
                  autoComplete="off"
                  spellCheck={false}
                  maw={420}
                />
                <Text size="sm" className="wr-quiet">
                  Copy the command now: it is shown once and ends <When at={making.expiresAt} />. It fetches the agent
                  from this Master, whose key it checks, and makes a user and, with systemd, a service for the agent.
                </Text>
              </Stack>
            </Panel>
            <Panel title="3. Watch it arrive">
              <Arrivals key={making.made.id} before={making.before} />
            </Panel>
          </>
        )}
        <Text size="sm" className="wr-quiet">
          Only trying things out? <code>windrow up --simulate 50</code> adds simulated hosts.
        </Text>
      </div>
    </div>
  );
}

/** After so long without a host something is probably in its way. */
const LATE_MS = 60_000;

function Arrivals({ before }: { before: ReadonlySet<string> }) {
  const [since] = useState(() => Date.now());
  const isLate = useNow() - since > LATE_MS;
  const { fleet } = useFleet();
  const fresh = useMemo(
    () => [...fleet.hosts.values()].map((stored) => stored.value).filter((host) => !before.has(host.id)),
    [fleet, before],
  );
  if (fresh.length === 0)
    return (
      <div role="status">
        <Text size="sm" mb={4}>
          Waiting for a new host…
        </Text>
        {isLate ? (
          <>
            <Text size="sm">No host has arrived yet. Check on that host:</Text>
            <Reasons
              reasons={[
                "Did the command end without an error? It says what is missing.",
                "Does the host reach the address in the command? A firewall may be in the way.",
                "Is its clock right? A wrong clock makes certificates invalid.",
                "Does the agent run? systemctl status windrow-agent; windrow-agent doctor",
              ]}
            />
          </>
        ) : (
          <Waiting lines={2} />
        )}
      </div>
    );
  return (
    <Stack gap="md" role="status" data-testid="arrived">
      {fresh.map((host) => (
        <div key={host.id}>
          <Group gap="sm" mb={6}>
            <Text fw={600}>
              <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: host.id }}>
                {plain(host.name)}
              </Link>
            </Text>
            <State state={host.headline} />
            {host.simulated && <Simulated />}
          </Group>
          <Facts
            rows={[
              ["Certified", <State key="c" state="Enrolled" />],
              [
                "Connected",
                host.link_state.toLowerCase() === "online" ? (
                  <State key="l" state="Online" />
                ) : (
                  <State key="l" state={host.link_state} />
                ),
              ],
              [
                "Inventory",
                host.inventory_hash ? <State key="i" state="Known" tone="ok" /> : <State key="i" state="Waiting" />,
              ],
              [
                "Bandwidth",
                host.bandwidth ? <State key="b" state="Measured" tone="ok" /> : <State key="b" state="Waiting" />,
              ],
              ["Tier", host.tier ? plain(host.tier) : <State key="t" state="Waiting" />],
            ]}
          />
        </div>
      ))}
    </Stack>
  );
}
