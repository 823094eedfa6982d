// A page in tabs under a head that stays in sight; the tab is kept in the address.
import { Tabs } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type ReactNode, useLayoutEffect, useRef } from "react";
import type { SearchWords } from "../tables/address.ts";
import { scrolledTo } from "./scrolled.ts";

export interface Tab {
  value: string;
  name: string;
  content: ReactNode;
  /** It goes on while another tab is looked at. */
  keeps?: boolean;
}

interface TabbedProps {
  head: ReactNode;
  tabs: readonly Tab[];
  /** Between head and tabs' content, whichever tab it is. */
  above?: ReactNode;
}

/** The chosen tab, and how to choose another. */
export function useTab(): readonly [string | undefined, (tab: string | null) => void] {
  const { tab }: SearchWords = useSearch({ strict: false });
  const navigate = useNavigate();
  return [
    tab,
    (next) =>
      void navigate({
        to: ".",
        search: (now: SearchWords) => ({ ...now, tab: next ?? undefined }),
        replace: true,
        resetScroll: false,
      }),
  ];
}

/** The row of tabs, scrolled so that the chosen one is in sight: on a phone it is longer than the window. */
function useInSight(value: string) {
  const list = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>("[role=tab][aria-selected=true]");
    if (list.current && tab && value) list.current.scrollLeft = scrolledTo(list.current, tab);
  }, [value]);
  return list;
}

export function Tabbed({ head, tabs, above }: TabbedProps) {
  const [tab, choose] = useTab();
  const value = tabs.find((one) => one.value === tab)?.value ?? tabs[0]!.value;
  return (
    <Tabs value={value} onChange={choose} keepMounted={false}>
      <div className="wr-sticky">
        {head}
        <Tabs.List ref={useInSight(value)}>
          {tabs.map((one) => (
            <Tabs.Tab key={one.value} value={one.value}>
              {one.name}
            </Tabs.Tab>
          ))}
        </Tabs.List>
      </div>
      {above}
      {tabs.map((one) => (
        <Tabs.Panel key={one.value} value={one.value} keepMounted={one.keeps ?? false}>
          {one.content}
        </Tabs.Panel>
      ))}
    </Tabs>
  );
}
