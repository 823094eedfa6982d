// Why a request fits nowhere now, in the Master's own words, and the changes with which it would.
import { Button, Group, Stack, Text } from "@mantine/core";
import type { Refusal as Told } from "../api/types.ts";
import { plain } from "../parts/format.ts";
import { Reasons } from "../parts/page.tsx";

/** use: applies the changes of a way to the form beside it; without one they are only read. */
export function Refusal({ refusal, use }: { refusal: Told; use?: (changes: Told["ways"][number]["changes"]) => void }) {
  const said = refusal.detail.toLowerCase();
  const isSaid = (text: string) =>
    text
      .toLowerCase()
      .split(": ")
      .every((part) => said.includes(part));
  const further = refusal.reasons.map((reason) => reason.text).filter((text) => !isSaid(text));
  return (
    <Stack gap="xs" data-testid="refusal">
      <Text size="sm">{plain(refusal.detail)}</Text>
      {further.length > 0 && <Reasons reasons={further} />}
      {refusal.ways.length > 0 && (
        <Stack gap={4} data-testid="ways">
          {refusal.ways.map((way) => (
            <Group key={way.text} gap="xs" justify="space-between" wrap="nowrap">
              <Text size="sm" className="wr-break">
                {plain(way.text)}
              </Text>
              {use && (
                <Button
                  variant="default"
                  size="compact-xs"
                  style={{ flexShrink: 0 }}
                  onClick={() => use(way.changes)}
                  aria-label={`Change the request: ${plain(way.text)}`}
                >
                  Change
                </Button>
              )}
            </Group>
          ))}
        </Stack>
      )}
    </Stack>
  );
}
