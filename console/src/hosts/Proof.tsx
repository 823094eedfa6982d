// A host's way from installation to listing, live, with the steps of its test rental.
import { Button, Stack, Text } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { post } from "../api/client.ts";
import { hostProof, me as meQuery } from "../api/queries.ts";
import type { Host, HostProofs } from "../api/types.ts";
import { mayOperate } from "../identity/rights.ts";
import { plain, words } from "../parts/format.ts";
import { Loaded, Panel, ProblemNote, Reasons } from "../parts/page.tsx";
import { Same } from "../parts/Same.tsx";
import { called } from "../parts/shell.ts";
import { Shape, When } from "../parts/state.tsx";
import { proofLabel, stageLabel, stepText, toneOfStage } from "./stages.ts";

export function ProofPanel({ host }: { host: Host }) {
  const client = useQueryClient();
  const query = useQuery(hostProof(host.id));
  const may = mayOperate(useQuery(meQuery).data, host) && !host.simulated;
  const prove = useMutation({
    mutationFn: () => post(`/hosts/${encodeURIComponent(host.id)}/prove`),
    onSuccess: () => {
      notifications.show({ message: "The Master rents this host for a moment; what it sees follows here." });
      void client.invalidateQueries({ queryKey: hostProof(host.id).queryKey });
    },
  });
  return (
    <Panel
      title="Setup progress"
      actions={
        may && (
          <Button variant="default" loading={prove.isPending} onClick={() => prove.mutate()}>
            Prove now
          </Button>
        )
      }
    >
      <Loaded query={query} lines={5}>
        {(found) => <Progress found={found} />}
      </Loaded>
      {prove.error && <ProblemNote error={prove.error} />}
      {may && <Same method="POST" path={`/hosts/${host.id}/prove`} command={`windrow host prove ${called(host)}`} />}
    </Panel>
  );
}

function Progress({ found }: { found: HostProofs }) {
  return (
    <Stack gap="sm">
      <ol className="wr-steps" aria-label="Setup progress" data-testid="stages">
        {found.stages.map((stage) => (
          <li key={stage.name} aria-label={stageLabel(stage)}>
            <span className={`wr-state wr-tone-${toneOfStage(stage.state)}`}>
              <Shape tone={toneOfStage(stage.state)} />
            </span>
            <span className="wr-break">
              {words(stage.name)}
              <Text size="xs" className="wr-quiet wr-break">
                {plain(stage.words)}
              </Text>
            </span>
            <span className="wr-quiet" style={{ fontSize: 12 }}>
              {stage.at && <When at={stage.at} />}
            </span>
          </li>
        ))}
      </ol>
      {found.proofs.map((proof) => (
        <details key={proof.proof_id} className="wr-details">
          <summary>
            {proofLabel(proof)}, <When at={proof.at} />
          </summary>
          {proof.words && (
            <Text size="sm" mt={4} className="wr-break">
              {plain(proof.words)}
            </Text>
          )}
          <Reasons reasons={proof.steps.map(stepText)} />
        </details>
      ))}
    </Stack>
  );
}
