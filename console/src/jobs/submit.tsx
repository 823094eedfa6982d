// Submits a job, with its files where it has some, and says how much of them is sent.
import { notifications } from "@mantine/notifications";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useRef, useState } from "react";
import { freshKey, post } from "../api/client.ts";
import type { Job, JobRequest, JobsSubmitted, RegistryLogin } from "../api/types.ts";
import { withLogin } from "../clusters/request.ts";
import type { Parcel } from "../folders/reading.ts";
import { FilesNotSent, sendFiles, stopped } from "../folders/sending.tsx";
import { plain } from "../parts/format.ts";
import { useMounted } from "../parts/mounted.ts";
import { PROGRAM } from "./jobs.ts";
import type { Packed } from "./tar.ts";

interface Asked {
  request: JobRequest;
  login: RegistryLogin | null;
  parcel: Parcel | null;
  /** Python that was pasted; empty: none. */
  program: string;
  /** Before its page is opened. */
  done?: () => void;
}

/** sent: bytes uploaded so far; null: nothing is being uploaded. */
export function useSubmitJob({ request, login, parcel, program, done }: Asked) {
  const navigate = useNavigate();
  const mounted = useMounted();
  const client = useQueryClient();
  const [sent, setSent] = useState<{ bytes: number; of: number } | null>(null);
  // Asked again, after an answer that got lost or files that did, it is the same job; a changed one is another.
  const [turn, setTurn] = useState(0);
  const key = useMemo(() => ({ request, parcel, program, turn, text: freshKey() }), [request, parcel, program, turn]);
  const line = useRef<AbortController | null>(null);
  const mutation = useMutation({
    mutationFn: async () => {
      const made = await post<JobsSubmitted>("/jobs", withLogin(request, login), key.text);
      const waits = made.jobs[0]!;
      const own: Packed[] = program.trim() ? [{ name: PROGRAM, file: new Blob([program]) }] : [];
      const files = [...(parcel?.files ?? []), ...own];
      if (files.length > 0 && waits.folder_bytes === null) {
        const path = `/jobs/${encodeURIComponent(waits.id)}`;
        try {
          line.current = new AbortController();
          await sendFiles(`${path}/files`, files, (bytes, of) => setSent({ bytes, of }), line.current.signal);
        } catch (failure) {
          if (failure instanceof FilesNotSent) {
            // These files never come: the job would wait for them for ever. The next one is another.
            await post<Job>(`${path}/cancel`).catch(() => undefined);
            setTurn((before) => before + 1);
          }
          throw failure;
        }
      }
      return made;
    },
    gcTime: 0, // what was sent has the login
    onSettled: () => setSent(null),
    onError: (failure) => {
      if (mounted.current) return;
      notifications.show({ color: "red", autoClose: false, message: `The job was not submitted. ${failure.message}` });
    },
    onSuccess: ({ jobs }) => {
      done?.();
      void client.invalidateQueries({ queryKey: ["jobs"] });
      const [job] = jobs;
      const open = () => void navigate({ to: "/jobs/$jobId", params: { jobId: job!.id }, ignoreBlocker: true });
      if (mounted.current) open();
      else notifications.show({ autoClose: false, message: <Submitted job={job!} open={open} /> });
    },
  });
  return { submit: mutation, sent, stop: () => line.current?.abort(stopped()) };
}

/** In a message, since somebody looks at another page by now. */
function Submitted({ job, open }: { job: Job; open: () => void }) {
  return (
    <>
      {plain(job.name)} is submitted.{" "}
      <a
        className="wr-link"
        href={`/jobs/${encodeURIComponent(job.id)}`}
        onClick={(event) => {
          event.preventDefault();
          open();
        }}
      >
        Open the job
      </a>
    </>
  );
}
