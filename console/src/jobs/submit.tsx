// Submits a job, with its files where it has some, and says how much of them is sent.
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { freshKey, post, upload } from "../api/client.ts";
import type { JobRequest, JobsSubmitted, RegistryLogin } from "../api/types.ts";
import { withLogin } from "../clusters/request.ts";
import type { Parcel } from "../folders/reading.ts";
import { PROGRAM } from "./jobs.ts";
import { type Packed, tarOf } from "./tar.ts";

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
  const client = useQueryClient();
  const [sent, setSent] = useState<{ bytes: number; of: number } | null>(null);
  // Asked again, after an answer that got lost or files that did, it is the same job; a changed one is another.
  const key = useMemo(() => ({ request, parcel, program, text: freshKey() }), [request, parcel, program]);
  const mutation = useMutation({
    mutationFn: async () => {
      const made = await post<JobsSubmitted>("/jobs", withLogin(request, login), key.text);
      const waits = made.jobs[0]!;
      const own: Packed[] = program.trim() ? [{ name: PROGRAM, file: new Blob([program]) }] : [];
      const files = [...(parcel?.files ?? []), ...own];
      if (files.length > 0 && waits.folder_bytes === null) {
        const tar = tarOf(files);
        const told = (bytes: number) => setSent({ bytes, of: tar.size });
        told(0);
        await upload(`/jobs/${encodeURIComponent(waits.id)}/files`, tar, told);
      }
      return made;
    },
    gcTime: 0, // what was sent has the login
    onSettled: () => setSent(null),
    onSuccess: ({ jobs }) => {
      done?.();
      void client.invalidateQueries({ queryKey: ["jobs"] });
      void navigate({ to: "/jobs/$jobId", params: { jobId: jobs[0]!.id } });
    },
  });
  return { submit: mutation, sent };
}
