// What the palette offers for a typed text: pages, things by name, deeds, pages of the documentation.
import { useMantineColorScheme } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useMemo } from "react";
import {
  clusters as clustersQuery,
  docsFound,
  hostsFound,
  jobs as jobsQuery,
  members as membersQuery,
  volumes as volumesQuery,
} from "../api/queries.ts";
import type { Cluster, Host, Job, Me, OrganisationMember, Volume } from "../api/types.ts";
import { signOut } from "../identity/session.ts";
import { plain, words } from "../parts/format.ts";
import { actsOn, gpuMeant, type Meant, meant, type Thing, VERBS, verbsFor } from "./acts.ts";
import type { Act } from "./PaletteAct.tsx";
import { closeness, mayOpen, menuFor, NEW, nearness } from "./pages.ts";

const TYPING_MS = 150;
const OF_A_KIND_MOST = 8;
const DOCS_MOST = 5;

export interface Choice {
  id: string;
  group: string;
  name: string;
  note?: string;
  /** Stays open: more has to be typed. */
  stays?: boolean;
  go: () => void;
}

interface Asked {
  me: Me;
  help: () => void;
  act: (act: Act) => void;
  type: (text: string) => void;
}

interface Found {
  hosts: readonly Host[];
  clusters: readonly Cluster[];
  jobs: readonly Job[];
  volumes: readonly Volume[];
  members: readonly OrganisationMember[];
}
const NOTHING: readonly never[] = [];

/** Part of an id: a few letters would be in every one. */
const isIn = (text: string, id: string): boolean => text.length >= 6 && id.includes(text);

export function useChoices(text: string, { me, help, act, type }: Asked): Choice[] {
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const [settled] = useDebouncedValue(text.trim(), TYPING_MS);
  const found = useFound(settled, me);
  const docs = useQuery({ ...docsFound(settled), enabled: settled.length > 1, placeholderData: keepPreviousData });
  return useMemo(() => {
    const go = (to: string, search?: Record<string, string>) => () => void navigate({ to, search } as never);
    const pages = menuFor(me.roles).map(({ path, name, menu }) => ({
      also: menu.also ?? "",
      choice: { id: path, group: "Page", name, note: `g ${menu.key}`, go: go(path) },
    }));
    const scheme = (id: "light" | "dark" | "auto", name: string) => ({
      also: "theme",
      choice: { id, group: "Do", name, go: () => setColorScheme(id) },
    });
    const verbs = verbsFor(me.roles).map(({ word, also, kinds }) => ({
      also: also.join(" "),
      choice: {
        id: `verb ${word}`,
        group: "Do",
        name: `${words(word)} …`,
        note: `a ${kinds.join(" or ")}`,
        stays: true,
        go: () => type(`${word} `),
      },
    }));
    const invites = NEW.some(([name, , roles]) => name === "Invitation" && roles.some((one) => me.roles.includes(one)));
    const actions = [
      ...(invites
        ? [
            {
              also: "new invitation colleague member",
              choice: deed("invite", "Invite somebody", go("/members", { invite: "1" })),
            },
          ]
        : []),
      scheme("light", "Light colours"),
      scheme("dark", "Dark colours"),
      scheme("auto", "Colours as the system"),
      { also: "keyboard shortcuts help ?", choice: { ...deed("help", "Show the keys", help), note: "?" } },
      {
        also: "docs help manual glossary",
        choice: { ...deed("docs", "Documentation", () => window.location.assign("/docs")), note: "/docs" },
      },
      { also: "logout leave", choice: deed("out", "Sign out", () => void signOut()) },
    ];
    const said = meant(text);
    const near = [...pages, ...actions, ...(said.name || !said.verbs.length ? verbs : [])]
      .map(({ also, choice }) => ({ choice, near: nearness(text, choice.name, also) }))
      .filter((one): one is { choice: Choice; near: number } => one.near !== null)
      .sort((a, b) => a.near - b.near)
      .map((one) => one.choice);
    const places = said.verbs.length ? [] : (docs.data ?? []).slice(0, DOCS_MOST);
    return [
      ...deeds(found, said, me, act),
      ...near,
      ...(text.trim() && !said.verbs.length ? things(found, said.name, go) : []),
      ...(said.verbs.length ? [] : deeds(found, { verbs: VERBS, name: said.name }, me, act, true)),
      ...(text.trim() ? places : []).map(({ title, heading, address }) => ({
        id: address,
        group: "Docs",
        name: heading,
        ...(heading === title ? {} : { note: title }),
        go: () => window.location.assign(address),
      })),
    ];
  }, [text, me, found, docs.data, navigate, setColorScheme, help, act, type]);
}

const deed = (id: string, name: string, go: () => void): Choice => ({ id, group: "Do", name, go });

/** What may be meant, as far as this person may read it; nothing before something is typed. */
function useFound(text: string, me: Me): Found {
  const { verbs, name } = meant(text);
  const { host } = gpuMeant(name);
  const typed = text !== "";
  const may = (path: string) => typed && mayOpen(path, me.roles);
  const hosts = useQuery({
    ...hostsFound(host),
    enabled: host !== "" || verbs.some(({ kinds }) => kinds.includes("host")),
    placeholderData: keepPreviousData,
  }).data?.items;
  const clusters = useQuery({ ...clustersQuery.first, enabled: may("/clusters") }).data?.items;
  const jobs = useQuery({ ...jobsQuery.first, enabled: may("/jobs") }).data?.items;
  const volumes = useQuery({ ...volumesQuery, enabled: may("/volumes") }).data;
  const members = useQuery({ ...membersQuery, enabled: may("/members") }).data;
  return useMemo(
    () => ({
      hosts: hosts ?? NOTHING,
      clusters: clusters ?? NOTHING,
      jobs: jobs ?? NOTHING,
      volumes: volumes ?? NOTHING,
      members: members ?? NOTHING,
    }),
    [hosts, clusters, jobs, volumes, members],
  );
}

/** isWhole: of things that are called just so. */
function deeds(found: Found, said: Meant, me: Me, act: (act: Act) => void, isWhole = false): Choice[] {
  const all: Thing[] = [
    ...found.hosts.map((of): Thing => ({ kind: "host", of })),
    ...found.clusters.map((of): Thing => ({ kind: "machine", of })),
    ...found.jobs.map((of): Thing => ({ kind: "job", of })),
    ...found.volumes.map((of): Thing => ({ kind: "volume", of })),
  ];
  return actsOn(isWhole ? all.filter((one) => one.of.name.toLowerCase() === said.name) : all, said, me)
    .slice(0, OF_A_KIND_MOST)
    .map(({ verb, thing }) => ({
      id: `${verb} ${thing.of.id}`,
      group: "Do",
      name: `${words(verb)} ${plain(thing.of.name)}`,
      note: thing.kind,
      go: () => act({ verb, thing }),
    }));
}

function things(found: Found, text: string, go: (to: string, search?: Record<string, string>) => () => void): Choice[] {
  const { host, index } = gpuMeant(text);
  const named = <T extends { id: string; name: string }>(of: readonly T[], name = text) =>
    of.filter((one) => closeness(name, one.name) !== null || isIn(name, one.id)).slice(0, OF_A_KIND_MOST);
  const list = <T extends { id: string; name: string }>(
    group: string,
    of: readonly T[],
    note: (one: T) => string,
    to: (one: T) => string,
  ) => named(of).map((one) => ({ id: one.id, group, name: plain(one.name), note: note(one), go: go(to(one)) }));
  const gpus = found.hosts
    .flatMap((one) => one.gpus.map((gpu) => ({ host: one, gpu })))
    .filter((one) =>
      index === null
        ? closeness(text, one.gpu.name) !== null
        : one.gpu.index === index && one.host.name.toLowerCase().includes(host),
    )
    .slice(0, OF_A_KIND_MOST)
    .map(({ host: of, gpu }) => ({
      id: `${of.id} ${gpu.uuid}`,
      group: "GPU",
      name: `${plain(of.name)} · GPU ${gpu.index}`,
      note: plain(gpu.name),
      go: go(`/gpus/${encodeURIComponent(gpu.uuid)}`),
    }));
  return [
    ...list(
      "Host",
      found.hosts,
      (one) => words(one.headline),
      (one) => `/hosts/${encodeURIComponent(one.id)}`,
    ),
    ...gpus,
    ...list(
      "Machine",
      found.clusters,
      (one) => words(one.phase),
      (one) => `/clusters/${encodeURIComponent(one.id)}`,
    ),
    ...list(
      "Job",
      found.jobs,
      (one) => words(one.state),
      (one) => `/jobs/${encodeURIComponent(one.id)}`,
    ),
    ...list(
      "Volume",
      found.volumes,
      (one) => (one.used_by.length ? "in use" : "not in use"),
      () => "/volumes",
    ),
    ...list(
      "Member",
      found.members,
      (one) => plain(one.address ?? ""),
      () => "/members",
    ),
  ];
}
