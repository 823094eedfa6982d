// Below a list: how many rows of how many are shown, and the way to older ones.
import { Button, Group, Text } from "@mantine/core";
import { count } from "../format.ts";
import type { Older } from "./older.ts";
import { ProblemNote } from "./page.tsx";

export function ListFoot({ older, shown }: { older: Older<unknown>; shown: number }) {
  return (
    <>
      {older.error ? <ProblemNote error={older.error} retry={older.load} /> : null}
      <Group justify="space-between" px={12} py={8}>
        <Text size="xs" className="wr-quiet" role="status" data-testid="shown">
          {shown === older.rows.length
            ? `${count(shown)} shown`
            : `${count(shown)} of ${count(older.rows.length)} shown`}
          {older.more ? "; older ones were not read yet" : ""}
        </Text>
        {older.more && (
          <Button variant="default" loading={older.loading} onClick={older.load}>
            Older
          </Button>
        )}
      </Group>
    </>
  );
}
