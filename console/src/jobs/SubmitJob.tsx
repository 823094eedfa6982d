// The foot of a job's form: what went wrong, how much of its files is sent, the button.
import { Button } from "@mantine/core";
import { Sent } from "../folders/FolderPicker.tsx";
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
      {sent && <Sent sent={sent} />}
      <Button type="submit" size="md" loading={submit.isPending}>
        Submit job
      </Button>
    </>
  );
}
