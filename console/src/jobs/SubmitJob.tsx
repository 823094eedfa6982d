// The foot of a job's form: what went wrong, how much of its files is sent, the button.
import { Button, Progress, Text } from "@mantine/core";
import { bytes } from "../parts/format.ts";
import { Panel, ProblemNote } from "../parts/page.tsx";
import type { useSubmitJob } from "./submit.ts";

export function SubmitJob({ submit, sent }: Pick<ReturnType<typeof useSubmitJob>, "submit" | "sent">) {
  return (
    <>
      {submit.error && (
        <Panel label="Error">
          <ProblemNote error={submit.error} />
        </Panel>
      )}
      {sent && (
        <div>
          <Text size="sm" role="status" mb={4}>
            Sending the files: {bytes(sent.bytes)} of {bytes(sent.of)}
          </Text>
          <Progress value={(100 * sent.bytes) / sent.of} aria-label="Files sent" />
        </div>
      )}
      <Button type="submit" size="md" loading={submit.isPending}>
        Submit job
      </Button>
    </>
  );
}
