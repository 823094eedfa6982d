// The ways into a running machine: a terminal in the page, and lines for the renter's own machine.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { box as boxQuery } from "../api/queries.ts";
import type { Box, Cluster } from "../api/types.ts";
import { Command, Loaded } from "../parts/page.tsx";
import { quoted } from "./request.ts";
import { editorLines, forwardedPorts } from "./terminal.ts";

/** Nothing runs there: no shell, no SSH, no Jupyter, no port. */
export const isSimulated = (cluster: Cluster) =>
  cluster.request.simulated || cluster.workloads.some((work) => work.runtime === "simulated");

interface ConnectProps {
  cluster: Cluster;
  mine: boolean;
  openTerminal: () => void;
}

export function Connect({ cluster, mine, openTerminal }: ConnectProps) {
  if (!mine)
    return (
      <Text size="sm" className="wr-quiet">
        The renter of a cluster connects to it, and with whom it is shared to use.
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
      </Group>
      {enters && <BoxLogins cluster={cluster} />}
      {ports.length > 0 && <Text size="sm">A port on your machine:</Text>}
      {ports.map((port) => (
        <Command
          key={port}
          text={`windrow cluster forward ${quoted(cluster.name)} ${port}`}
          label={`command for port ${port}`}
        />
      ))}
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
          {box.ssh_port !== null && (
            <>
              <Text size="sm">Log in with your own key:</Text>
              <Command text={`windrow cluster ssh ${name}`} label="command to log in" />
              <Text size="sm">In VS Code, with its extension Remote - SSH:</Text>
              <Command text={editorLines(cluster)} label="commands for VS Code" />
            </>
          )}
          {box.notebook_port !== null && (
            <>
              <Text size="sm">Jupyter on your machine:</Text>
              <Command text={`windrow cluster forward ${name} 8888`} label="command for the notebook" />
              <Text size="sm">and then in a browser:</Text>
              <Command
                text={`http://${cluster.forward_host}:8888/?token=${box.notebook_token ?? ""}`}
                label="address of the notebook"
              />
            </>
          )}
          <Text size="xs" className="wr-quiet">
            If neither answers, the output says what the image lacks.
          </Text>
        </Stack>
      )}
    </Loaded>
  );
}
