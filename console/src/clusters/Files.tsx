// The files of a cluster. They are shown as a tree, all or only changed ones are downloaded as an archive, and others
// uploaded.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { send } from "../api/client.ts";
import { FolderPicker, Sent } from "../folders/FolderPicker.tsx";
import type { Parcel } from "../folders/reading.ts";
import { SendingProblem, sendFiles } from "../folders/sending.tsx";
import { bytes, compareTexts, count, plain } from "../parts/format.ts";
import { DownloadIcon } from "../parts/icons.tsx";
import { AskBeforeLeaving } from "../parts/Leaving.tsx";
import { Command, Empty, ProblemNote } from "../parts/page.tsx";
import { keep } from "../tables/Csv.tsx";
import { entriesOf, type Folder, treeOf } from "./archive.ts";

interface Got {
  size: number;
  cut: boolean;
  /** To be looked at in the page. */
  archive: Uint8Array<ArrayBuffer> | null;
}

interface Wanted {
  changed: boolean;
  isShown: boolean;
}

interface FilesProps {
  clusterId: string;
  name: string;
  /** How a command line names it. */
  word: string;
  over: boolean;
  /** It runs, and files can be sent to it. */
  takes: boolean;
}

export function Files({ clusterId, name, word, over, takes }: FilesProps) {
  const fetchThem = useMutation<Got, unknown, Wanted>({
    mutationFn: async ({ changed, isShown }) => {
      const answer = await send(
        "GET",
        `/clusters/${encodeURIComponent(clusterId)}/files`,
        { query: { changed } },
        null,
      );
      const tar = await answer.blob();
      const cut = answer.headers.get("X-Files-Truncated")?.toLowerCase() === "true";
      if (isShown) return { size: tar.size, cut, archive: new Uint8Array(await tar.arrayBuffer()) };
      keep(tar, `${name.replace(/[^A-Za-z0-9._-]+/g, "-") || "files"}${changed ? "-changed" : ""}.tar`);
      return { size: tar.size, cut, archive: null };
    },
  });
  if (over)
    return (
      <Empty title="The files are gone">
        They were deleted with the machine. Download files before you delete a machine.
      </Empty>
    );
  return (
    <Stack gap="sm" p="md">
      <Text size="sm">
        A tar archive of the folder the command runs in. A folder may be up to 1 GiB; the page says if files were left
        out.
      </Text>
      <Group gap="xs">
        <Button
          leftSection={<DownloadIcon />}
          loading={fetchThem.isPending}
          onClick={() => fetchThem.mutate({ changed: true, isShown: false })}
        >
          Download what changed
        </Button>
        <Button
          variant="default"
          leftSection={<DownloadIcon />}
          disabled={fetchThem.isPending}
          onClick={() => fetchThem.mutate({ changed: false, isShown: false })}
        >
          Download all
        </Button>
        <Button
          variant="default"
          disabled={fetchThem.isPending}
          onClick={() => fetchThem.mutate({ changed: false, isShown: true })}
        >
          Show the files
        </Button>
      </Group>
      {fetchThem.data && (
        <Text size="sm" role="status">
          {bytes(fetchThem.data.size)} {fetchThem.data.archive ? "read" : "downloaded"}.
          {fetchThem.data.cut && " It passed the limit and was cut: not every file is in it."}
        </Text>
      )}
      {fetchThem.data?.archive && <Tree archive={fetchThem.data.archive} />}
      {fetchThem.error ? <ProblemNote error={fetchThem.error} /> : null}
      {takes && <Upload clusterId={clusterId} />}
      <Command text={`windrow cluster files ${word} --changed`} label="the same by command" />
    </Stack>
  );
}

/** Files into the folder that the command runs in; those of the same name are replaced. */
function Upload({ clusterId }: { clusterId: string }) {
  const [parcel, choose] = useState<Parcel | null>(null);
  const [sent, setSent] = useState<{ bytes: number; of: number } | null>(null);
  const act = useMutation({
    mutationFn: async (files: Parcel["files"]) => {
      const path = `/clusters/${encodeURIComponent(clusterId)}/files`;
      await sendFiles(path, files, (bytes, of) => setSent({ bytes, of }));
      return files.length;
    },
    onSuccess: () => choose(null),
    onSettled: () => setSent(null),
  });
  return (
    <>
      <FolderPicker
        parcel={parcel}
        change={choose}
        label="Upload"
        about="It is sent to the folder that the command runs in, and replaces files of the same name."
      />
      {sent && <Sent sent={sent} />}
      {parcel && (
        <Group>
          <Button loading={act.isPending} onClick={() => act.mutate(parcel.files)}>
            Upload {plain(parcel.title)}
          </Button>
        </Group>
      )}
      {act.data && !parcel && (
        <Text size="sm" role="status">
          {count(act.data)} {act.data === 1 ? "file is" : "files are"} there now.
        </Text>
      )}
      {act.error ? <SendingProblem error={act.error} /> : null}
      <AskBeforeLeaving
        when={act.isPending}
        title="Files are being sent"
        text="They go on being sent on another page of the console. If you close or reload this window, they are not."
      />
    </>
  );
}

function Tree({ archive }: { archive: Uint8Array<ArrayBuffer> }) {
  const tree = useMemo(() => treeOf(entriesOf(archive)), [archive]);
  if (tree.bytes === 0 && tree.files.length === 0 && tree.folders.size === 0)
    return <Text size="sm">The folder is empty.</Text>;
  return <Branch folder={tree} archive={archive} />;
}

function Branch({ folder, archive }: { folder: Folder; archive: Uint8Array<ArrayBuffer> }) {
  return (
    <ul className="wr-tree">
      {[...folder.folders].sort(byKey).map(([name, inner]) => (
        <li key={name}>
          <details>
            <summary>
              {plain(name)}/ <span className="wr-quiet">{bytes(inner.bytes)}</span>
            </summary>
            <Branch folder={inner} archive={archive} />
          </details>
        </li>
      ))}
      {folder.files.map((file) => (
        <li key={file.path}>
          <button
            type="button"
            className="wr-id"
            onClick={() => keep(new Blob([archive.slice(file.at, file.at + file.bytes)]), file.name)}
            aria-label={`Download ${plain(file.path)}`}
          >
            {plain(file.name)}
          </button>{" "}
          <span className="wr-quiet">{bytes(file.bytes)}</span>
        </li>
      ))}
    </ul>
  );
}

const byKey = ([one]: [string, Folder], [other]: [string, Folder]): number => compareTexts(one, other);
