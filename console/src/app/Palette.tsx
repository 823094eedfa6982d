// The command palette: finds pages, actions, hosts and clusters by typing.
import { Modal, TextInput, useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { clusters as clustersQuery, hostsFound } from "../api/queries.ts";
import type { Role } from "../api/types.ts";
import { signOut } from "../identity/session.ts";
import { plain, words } from "../parts/format.ts";
import { SearchIcon } from "../parts/icons.tsx";
import { closeness, mayOpen, menuFor } from "./pages.ts";

const TYPING_MS = 150;
const OF_A_KIND_MOST = 8;

interface Choice {
  id: string;
  group: string;
  name: string;
  note?: string;
  go: () => void;
}

export function Palette({ roles, close, help }: { roles: readonly Role[]; close: () => void; help: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const choices = useChoices(text, roles, help);
  const list = useId();
  const here = Math.min(at, Math.max(0, choices.length - 1));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Braces: newer browsers answer a scroll with a promise, which is no clean-up.
    void box.current?.querySelector(`[data-choice="${here}"]`)?.scrollIntoView({ block: "nearest" });
  }, [here]);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    choice.go();
  };
  const typed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && choices.length) {
      event.preventDefault();
      setAt((here + step + choices.length) % choices.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(choices[here]);
    }
  };
  return (
    <Modal
      opened
      onClose={close}
      withCloseButton={false}
      padding={0}
      centered={false}
      yOffset="12vh"
      size={560}
      aria-label="Go to"
      transitionProps={{ duration: 0 }}
    >
      <TextInput
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={typed}
        role="combobox"
        aria-label="Go to a page, host or cluster, or do something"
        aria-expanded="true"
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={choices.length ? `${list}-${here}` : undefined}
        placeholder="Page, host, cluster or action"
        leftSection={<SearchIcon />}
        size="md"
        data-autofocus
        styles={{ input: { border: 0, borderBottom: "1px solid var(--wr-line)", borderRadius: 0 } }}
      />
      <div ref={box} id={list} role="listbox" aria-label="Choices" className="wr-palette">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys, as in every combobox
          <div
            key={choice.id}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === here}
            data-choice={index}
            className="wr-choice"
            onMouseMove={() => setAt(index)}
            onClick={() => choose(choice)}
          >
            <span className="wr-quiet wr-choice-group">{choice.group}</span>
            <span className="wr-cut">{choice.name}</span>
            {choice.note && <span className="wr-quiet wr-cut">{choice.note}</span>}
          </div>
        ))}
      </div>
      <p className="wr-palette-foot wr-quiet" role="status">
        {choices.length ? (
          <>
            <kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> go · <kbd>Esc</kbd> close
          </>
        ) : (
          "No results."
        )}
      </p>
    </Modal>
  );
}

/** Part of an id: a few letters would be in every one. */
const isIn = (text: string, id: string): boolean => text.trim().length >= 6 && id.includes(text.trim());

function useChoices(text: string, roles: readonly Role[], help: () => void): Choice[] {
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const [settled] = useDebouncedValue(text.trim(), TYPING_MS);
  const hosts = useQuery({ ...hostsFound(settled), placeholderData: keepPreviousData });
  const clusters = useQuery({ ...clustersQuery.first, enabled: mayOpen("/clusters", roles) });
  return useMemo(() => {
    const pages = menuFor(roles).map(({ path, name, menu }) => ({
      also: menu.also ?? "",
      choice: { id: path, group: "Page", name, note: `g ${menu.key}`, go: () => void navigate({ to: path }) },
    }));
    const actions = [
      { also: "theme", choice: { id: "light", group: "Do", name: "Light colours", go: () => setColorScheme("light") } },
      { also: "theme", choice: { id: "dark", group: "Do", name: "Dark colours", go: () => setColorScheme("dark") } },
      {
        also: "theme auto",
        choice: { id: "auto", group: "Do", name: "Colours as the system", go: () => setColorScheme("auto") },
      },
      {
        also: "keyboard shortcuts help ?",
        choice: { id: "help", group: "Do", name: "Show the keys", note: "?", go: help },
      },
      { also: "logout leave", choice: { id: "out", group: "Do", name: "Sign out", go: () => void signOut() } },
    ];
    const found = [...pages, ...actions]
      .map(({ also, choice }) => ({ choice, near: closeness(text, choice.name, also) }))
      .filter((one): one is { choice: Choice; near: number } => one.near !== null)
      .sort((a, b) => a.near - b.near)
      .map((one) => one.choice);
    const mine = (clusters.data?.items ?? [])
      .filter((cluster) => text.trim() && (closeness(text, cluster.name) !== null || isIn(text, cluster.id)))
      .slice(0, OF_A_KIND_MOST)
      .map(
        (cluster): Choice => ({
          id: cluster.id,
          group: "Cluster",
          name: plain(cluster.name),
          note: words(cluster.phase),
          go: () => void navigate({ to: "/clusters/$clusterId", params: { clusterId: cluster.id } }),
        }),
      );
    const machines = (text.trim() ? (hosts.data?.items ?? []) : [])
      .filter((host) => closeness(text, host.name) !== null || isIn(text, host.id))
      .map(
        (host): Choice => ({
          id: host.id,
          group: "Host",
          name: plain(host.name),
          note: words(host.headline),
          go: () => void navigate({ to: "/hosts/$hostId", params: { hostId: host.id } }),
        }),
      );
    return [...found, ...machines, ...mine];
  }, [text, roles, hosts.data, clusters.data, navigate, setColorScheme, help]);
}
