// Sends files as a tar; what a browser reads no more is told apart from a Master that does not answer.
import { Text } from "@mantine/core";
import { upload } from "../api/client.ts";
import { type Packed, tarOf } from "../jobs/tar.ts";
import { plain } from "../parts/format.ts";
import { ProblemNote } from "../parts/page.tsx";
import { changedText, unreadable } from "./reading.ts";

/** They were changed since they were chosen, or somebody stopped it: to try again helps nothing. */
export class FilesNotSent extends Error {}

export const stopped = () => new FilesNotSent("You stopped sending the files.");

/** told: bytes on their way, of how many; stop: its reason is thrown. Throws FilesNotSent, ApiProblem. */
export async function sendFiles(
  path: string,
  files: readonly Packed[],
  told: (bytes: number, of: number) => void,
  stop?: AbortSignal,
) {
  const tar = tarOf(files);
  told(0, tar.size);
  await upload(
    path,
    tar,
    (bytes) => told(bytes, tar.size),
    async () => {
      const lost = await unreadable(files);
      return lost.length > 0 ? new FilesNotSent(changedText(lost)) : null;
    },
    stop,
  );
}

export function SendingProblem({ error }: { error: unknown }) {
  if (!(error instanceof FilesNotSent)) return <ProblemNote error={error} />;
  return (
    <Text size="sm" role="alert" className="wr-tone-bad wr-break">
      {plain(error.message)}
    </Text>
  );
}
