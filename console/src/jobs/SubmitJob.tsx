// The foot of a job's form: what went wrong, how much of its files is sent, the button.
import { Button } from "@mantine/core";
import { Sent } from "../folders/FolderPicker.tsx";
import { SendingProblem } from "../folders/sending.tsx";
import { Panel } from "../parts/page.tsx";
import type { useSubmitJob } from "./submit.tsx";

type Props = ReturnType<typeof useSubmitJob> & { disabled?: boolean };

export function SubmitJob({ submit, sent, stop, disabled = false }: Props) {
  return (
    <>
      {submit.error && (
        <Panel label="Error">
          <SendingProblem error={submit.error} />
        </Panel>
      )}
      {sent && (
        <>
          <Sent sent={sent} />
          <Button variant="default" onClick={stop}>
            Stop sending
          </Button>
        </>
      )}
      <Button type="submit" size="md" loading={submit.isPending} disabled={disabled}>
        Submit job
      </Button>
    </>
  );
}
