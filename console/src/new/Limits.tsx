// The third step: until when it runs, and what it may cost.
import { SimpleGrid, TextInput } from "@mantine/core";
import { Panel } from "../parts/page.tsx";
import { BLANK_CHOICE, type Choice } from "./choice.ts";
import type { Faults } from "./Details.tsx";

interface Props {
  choice: Choice;
  change: (part: Partial<Choice>) => void;
  faults: Faults;
  /** The faults of what was not typed are shown, too. */
  tried: boolean;
  /** It may end because nobody uses it. */
  mayIdle: boolean;
}

export function Limits({ choice, change, faults, tried, mayIdle }: Props) {
  const text = (name: "hours" | "idleMinutes" | "budget", fault: string | undefined) => ({
    error: (tried || choice[name] !== BLANK_CHOICE[name]) && fault,
    inputMode: "decimal" as const,
    placeholder: "no limit",
    value: choice[name],
    onChange: (event: { currentTarget: { value: string } }) => change({ [name]: event.currentTarget.value }),
  });
  return (
    <Panel title="3. Limits">
      <SimpleGrid cols={{ base: 1, sm: 3 }} spacing="sm">
        <TextInput label="Ends after (hours)" {...text("hours", faults.hours ?? faults.minutes)} />
        {mayIdle && <TextInput label="Ends when unused for (minutes)" {...text("idleMinutes", faults.idleMinutes)} />}
        <TextInput label="Cost at most" {...text("budget", faults.budget)} />
      </SimpleGrid>
    </Panel>
  );
}
