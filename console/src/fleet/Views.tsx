// Saved views of a page: its address under a name, kept in this browser.
import { Button, Group, Menu, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { plain } from "../parts/format.ts";
import { ChevronIcon } from "../parts/icons.tsx";
import { parseSearch, type SearchWords, stringifySearch } from "../tables/address.ts";

const NAME_MOST = 40;

export function Views() {
  const [views, keep] = useLocalStorage<Record<string, string>>({
    key: "windrow.views.fleet",
    defaultValue: {},
    getInitialValueInEffect: false,
  });
  const given: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  const [name, setName] = useState("");
  const now = stringifySearch(given);
  const isNamed = name.trim() !== "";
  return (
    <Menu position="bottom-end" width={280} trapFocus>
      <Menu.Target>
        <Button variant="default" rightSection={<ChevronIcon size={12} />}>
          Views
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {Object.entries(views).map(([one, words]) => (
          <Menu.Item
            key={one}
            onClick={() => void navigate({ to: ".", search: parseSearch(words) as never, replace: true })}
          >
            {plain(one)}
          </Menu.Item>
        ))}
        {Object.keys(views).length > 0 && <Menu.Divider />}
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
            <Menu.Item
              key={one}
              color="red"
              onClick={() => keep(Object.fromEntries(Object.entries(views).filter(([other]) => other !== one)))}
            >
              Delete the view {plain(one)}
            </Menu.Item>
          ))}
      </Menu.Dropdown>
    </Menu>
  );
}
