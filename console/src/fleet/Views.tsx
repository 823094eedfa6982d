// Saved views of a page: its address under a name, kept in this browser.
import { Button, Group, Popover, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { parseSearch, readViews, type SearchWords, stringifySearch } from "../tables/address.ts";

const NAME_MOST = 40;

export function Views() {
  const [views, keep] = useLocalStorage<Record<string, string>>({
    key: "windrow.views.fleet",
    defaultValue: {},
    getInitialValueInEffect: false,
    deserialize: readViews, // what was kept may be of another version, or of another hand
  });
  const given: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const now = stringifySearch(given);
  const isNamed = name.trim() !== "";
  const [opened, open] = useState(false);
  const go = (words: string) => {
    open(false);
    void navigate({ to: ".", search: parseSearch(words) as never, replace: true });
  };
  return (
    <Popover opened={opened} onChange={open} position="bottom-end" width={280} trapFocus>
      <Popover.Target>
        <Button variant="default" rightSection={<ChevronIcon size={12} />} onClick={() => open(!opened)}>
          Views
        </Button>
      </Popover.Target>
      <Popover.Dropdown p={6}>
        {Object.entries(views).map(([one, words]) => (
          <Button key={one} fullWidth justify="flex-start" variant="subtle" color="gray" onClick={() => go(words)}>
            {plain(one)}
          </Button>
        ))}
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (isNamed) keep({ ...views, [name.trim()]: now });
            setName("");
          }}
        >
          <Group gap={6} p={6} wrap="nowrap">
            <TextInput
              size="xs"
              aria-label="Name of this view"
              placeholder="Name of this view"
              maxLength={NAME_MOST}
              value={name}
              onChange={(event) => setName(event.currentTarget.value)}
            />
            <Button size="xs" type="submit" disabled={!isNamed}>
              Save
            </Button>
          </Group>
        </form>
        {Object.entries(views)
          .filter(([, words]) => words === now)
          .map(([one]) => (
            <Button
              key={one}
              fullWidth
              justify="flex-start"
              variant="subtle"
              color="red"
              onClick={() => keep(Object.fromEntries(Object.entries(views).filter(([other]) => other !== one)))}
            >
              Delete the view {plain(one)}
            </Button>
          ))}
      </Popover.Dropdown>
    </Popover>
  );
}
