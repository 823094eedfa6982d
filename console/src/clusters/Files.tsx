// Downloads a cluster's files: all, or those that changed since it started.
import { Button, Group, Stack, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { send } from "../api/client.ts";
import { bytes } from "../parts/format.ts";
import { DownloadIcon } from "../parts/icons.tsx";
import { Command, Empty, ProblemNote } from "../parts/page.tsx";
import { keep } from "../tables/Csv.tsx";

interface Got {
  size: number;
  cut: boolean;
}

export function Files({ clusterId, name, over }: { clusterId: string; name: string; over: boolean }) {
  const fetchThem = useMutation<Got, unknown, boolean>({
    mutationFn: async (changed) => {
      const answer = await send(
        "GET",
        `/clusters/${encodeURIComponent(clusterId)}/files`,
        { query: { changed } },
        null,
      );
      const tar = await answer.blob();
      keep(tar, `${name.replace(/[^A-Za-z0-9._-]+/g, "-") || "files"}${changed ? "-changed" : ""}.tar`);
      return { size: tar.size, cut: answer.headers.get("X-Files-Truncated")?.toLowerCase() === "true" };
    },
  });
  if (over)
    return (
      <Empty title="The files are gone">
        They were deleted with the cluster. Download files before you delete a cluster.
      </Empty>
    );
  return (
    <Stack gap="sm" p="md">
      <Text size="sm">
        A tar archive of the folder the command runs in. A folder may be up to 1 GiB; the page says if files were left
        out.
      </Text>
      <Group gap="xs">
        <Button leftSection={<DownloadIcon />} loading={fetchThem.isPending} onClick={() => fetchThem.mutate(true)}>
          Download what changed
        </Button>
        <Button
          variant="default"
          leftSection={<DownloadIcon />}
          disabled={fetchThem.isPending}
          onClick={() => fetchThem.mutate(false)}
        >
          Download all
        </Button>
      </Group>
      {fetchThem.data && (
        <Text size="sm" role="status">
          {bytes(fetchThem.data.size)} downloaded.
          {fetchThem.data.cut && " It passed the limit and was cut: not every file is in it."}
        </Text>
      )}
      {fetchThem.error ? <ProblemNote error={fetchThem.error} /> : null}
      <Command text={`windrow cluster files ${clusterId} --changed`} label="the same by command" />
    </Stack>
  );
}
