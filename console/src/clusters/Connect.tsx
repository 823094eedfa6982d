// The ways into a running machine: a terminal in the page, and lines for the renter's own machine.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { post } from "../api/client.ts";
import { box as boxQuery } from "../api/queries.ts";
import type { Box, Cluster, Notebook } from "../api/types.ts";
import { bytes, count, plain } from "../parts/format.ts";
import { Command, Loaded, ProblemNote } from "../parts/page.tsx";
import { quoted } from "../parts/shell.ts";
import { editorLines, forwardedPorts } from "./terminal.ts";

/** Nothing runs there: no shell, no SSH, no Jupyter, no port. */
export const isSimulated = (cluster: Cluster) =>
  cluster.request.simulated || cluster.workloads.some((work) => work.runtime === "simulated");

/** A machine to work in that was given no key. */
const isWithoutSsh = ({ kind, request }: Cluster) =>
  kind === "box" && request.argv.length === 0 && request.ssh_keys.length === 0;

interface ConnectProps {
  cluster: Cluster;
  mine: boolean;
  openTerminal: () => void;
}

export function Connect({ cluster, mine, openTerminal }: ConnectProps) {
  if (!mine)
    return (
      <Text size="sm" className="wr-quiet">
        The renter of a machine connects to it, and with whom it is shared to use.
      </Text>
    );
  if (isSimulated(cluster))
    return (
      <Text size="sm" className="wr-quiet">
        Simulated hosts have no terminal, and start neither SSH nor Jupyter.
      </Text>
    );
  const ports = forwardedPorts(cluster);
  const enters = cluster.request.ssh_keys.length > 0 || cluster.request.notebook;
  return (
    <Stack gap="sm">
      <Group gap="xs">
        <Button onClick={openTerminal}>Open terminal</Button>
        {cluster.request.notebook && <OpenJupyter cluster={cluster} />}
      </Group>
      {isWithoutSsh(cluster) && (
        <Text size="sm">
          Started without an SSH key, so that no SSH server runs on it.{" "}
          <Link className="wr-link" to="/clusters/new" search={{ like: cluster.id }}>
            Start another like it
          </Link>{" "}
          with a key, or use the terminal.
        </Text>
      )}
      {enters && <BoxLogins cluster={cluster} />}
      {ports.length > 0 && (
        <div className="wr-ways">
          {ports.map((port) => (
            <div key={port}>
              <Text size="sm">Port {port} on your machine:</Text>
              <Command
                text={`windrow cluster forward ${quoted(cluster.name)} ${port}`}
                label={`command for port ${port}`}
              />
            </div>
          ))}
        </div>
      )}
    </Stack>
  );
}

/** Its address is asked for when it is wanted: it leads there for a working day, by the notebook's own token. */
function OpenJupyter({ cluster }: { cluster: Cluster }) {
  const open = useMutation({
    mutationFn: () => post<Notebook>(`/clusters/${encodeURIComponent(cluster.id)}/notebook`),
    gcTime: 0, // the address has the token
    onSuccess: ({ url }) => window.open(url, "_blank", "noopener"),
  });
  return (
    <Stack gap={4}>
      <Group gap="xs">
        <Button loading={open.isPending} onClick={() => open.mutate()}>
          Open Jupyter
        </Button>
        {open.data && (
          <a className="wr-link" href={open.data.url} target="_blank" rel="noopener noreferrer">
            Jupyter in a new window
          </a>
        )}
      </Group>
      {open.data && new URL(open.data.url, window.location.href).hostname.endsWith("localhost") && (
        <Text size="sm" className="wr-quiet">
          Its certificate is this market's own: the browser warns of it once. Go on there, at "Advanced".
        </Text>
      )}
      {open.error && <ProblemNote error={open.error} />}
    </Stack>
  );
}

/** Commands for the renter's own machine, and Jupyter's address. */
function BoxLogins({ cluster }: { cluster: Cluster }) {
  const query = useQuery(boxQuery(cluster.id));
  const name = quoted(cluster.name);
  return (
    <Loaded query={query}>
      {(box: Box) => (
        <Stack gap="sm" data-testid="box-logins">
          <div className="wr-ways">
            {box.ssh_port !== null && (
              <>
                <div>
                  <Text size="sm">Log in with your own key:</Text>
                  <Command text={`windrow cluster ssh ${name}`} label="command to log in" />
                </div>
                <div>
                  <Text size="sm">In VS Code, with its extension Remote - SSH:</Text>
                  <Command text={editorLines(cluster)} label="commands for VS Code" />
                </div>
              </>
            )}
            {box.notebook_port !== null && (
              <div>
                <Text size="sm">Jupyter on your machine:</Text>
                <Command text={`windrow cluster forward ${name} 8888`} label="command for the notebook" />
                <Text size="sm">and then in a browser:</Text>
                <Command
                  text={`http://${cluster.forward_host}:8888/?token=${box.notebook_token ?? ""}`}
                  label="address of the notebook"
                />
              </div>
            )}
          </div>
          <Text size="xs" className="wr-quiet">
            If neither answers, the output says what the image lacks.
          </Text>
        </Stack>
      )}
    </Loaded>
  );
}

/** The addresses of a service; the renter decides whom to tell. */
export function Addresses({ cluster }: { cluster: Cluster }) {
  return (
    <Stack gap="sm" data-testid="addresses">
      {Object.entries(cluster.urls).map(([port, url]) => (
        <div key={port}>
          <a className="wr-link wr-break" href={url} target="_blank" rel="noopener noreferrer">
            Port {plain(port)} in a new window
          </a>
          <Command text={url} label={`address of port ${port}`} />
        </div>
      ))}
      <Text size="xs" className="wr-quiet">
        Whoever knows an address may call it: the service itself checks its callers.
      </Text>
      <Text size="xs" className="wr-quiet">
        {count(cluster.traffic.connections)} connections, {bytes(cluster.traffic.bytes_in)} in,{" "}
        {bytes(cluster.traffic.bytes_out)} out
      </Text>
    </Stack>
  );
}
