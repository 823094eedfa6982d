// The frame around every page: menu, account, the bar that says that the Master does not answer.
import {
  ActionIcon,
  AppShell,
  Button,
  Group,
  type MantineColorScheme,
  Text,
  Tooltip,
  useMantineColorScheme,
} from "@mantine/core";
import { useDisclosure, useHotkeys } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import {
  type ComponentType,
  lazy,
  Suspense,
  useCallback,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { connection } from "../api/connection.ts";
import { meBefore, me as meQuery, queryClient } from "../api/queries.ts";
import { whyRefused } from "../api/secret.ts";
import type { Me, Role } from "../api/types.ts";
import { InvitationPage } from "../identity/InvitationPage.tsx";
import { PasswordPage } from "../identity/PasswordPage.tsx";
import { ReturnPage } from "../identity/ReturnPage.tsx";
import { roleNames } from "../identity/roles.ts";
import { SignInAgain } from "../identity/SignInAgain.tsx";
import { SignInPage } from "../identity/SignInPage.tsx";
import { type Brought, useBrought } from "../identity/session.ts";
import { isFilled } from "../parts/filled.ts";
import { amount, duration, plain } from "../parts/format.ts";
import { AutoIcon, KeyboardIcon, MoonIcon, SearchIcon, SunIcon } from "../parts/icons.tsx";
import { Empty, PageHead, ProblemNote, Waiting } from "../parts/page.tsx";
import { TestMoney, useNow } from "../parts/state.tsx";
import { Bell } from "./Bell.tsx";
import { Help } from "./Help.tsx";
import { isShortcut } from "./keys.ts";
import { Navigation, New, PhoneBar } from "./Navigation.tsx";
import { Palette } from "./Palette.tsx";
import type { Act } from "./PaletteAct.tsx";
import { closedAt, type MenuPage, menuFor, titleOf } from "./pages.ts";
import { useProduct } from "./product.ts";
import { UserMenu } from "./UserMenu.tsx";

const PaletteAct = lazy(async () => ({ default: (await import("./PaletteAct.tsx")).PaletteAct }));

/** Who only looks after the market has nothing to pay from its balance. */
const HAVE_MONEY: readonly Role[] = ["renter", "viewer", "admin", "provider"];

export function Frame() {
  const [brought, used] = useBrought();
  const query = useQuery(meQuery);
  if (brought !== null && query.data !== undefined) return <Opened brought={brought} me={query.data} done={used} />;
  if (query.data === undefined) {
    return (
      <main style={{ maxWidth: 560, margin: "0 auto", paddingTop: "18vh" }}>
        {query.error ? <ProblemNote error={query.error} retry={() => void query.refetch()} /> : <Waiting />}
      </main>
    );
  }
  // A form outlives the session in which it was filled in: it waits behind the sign-in page for its own person.
  const waits = query.data === null && whyRefused() !== null && isFilled() ? meBefore() : null;
  const shown = query.data ?? waits;
  const note = waits === null ? whyRefused() : `${whyRefused()} What you filled in is kept.`;
  return (
    <>
      {shown !== null && (
        <div style={{ display: waits === null ? "contents" : "none" }}>
          <Signed key={shown.user?.id ?? shown.account.id} me={shown} />
        </div>
      )}
      {query.data === null && <SignInPage brought={null} me={null} done={used} note={note} />}
    </>
  );
}

/** The page for a secret that the address brought. */
function Opened({ brought, me, done }: { brought: Brought; me: Me | null; done: () => void }) {
  if (brought.kind === "invitation") return <InvitationPage secret={brought.text} me={me} done={done} />;
  if (brought.kind === "password") return <PasswordPage secret={brought.text} done={done} />;
  if (brought.kind === "provider") return <ReturnPage back={brought} done={done} />;
  return <SignInPage brought={brought} me={me} done={done} />;
}

function Signed({ me }: { me: Me }) {
  const [opened, { toggle, close }] = useDisclosure();
  const [shown, show] = useState<"palette" | "help" | null>(null);
  const hide = useCallback(() => show(null), []);
  const help = useCallback(() => show("help"), []);
  const [acting, setActing] = useState<Act | null>(null);
  const act = useCallback((wanted: Act) => {
    if (wanted.verb === "open jupyter" && wanted.thing.kind === "machine") {
      const cluster = wanted.thing.of;
      void import("./PaletteAct.tsx").then(({ openJupyter }) => openJupyter(cluster));
    } else setActing(wanted);
  }, []);
  const path = useRouterState({ select: (state) => state.location.pathname });
  const isAbout = useRouterState({ select: (state) => "subject" in state.location.search });
  const closed = closedAt(path, me.roles, isAbout);
  const product = useProduct();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another page closes the menu
  useEffect(close, [path, close]);
  useJumps(me, help);
  useArrival(path);
  // Also while typing in a field: that is where one notices that one wanted to be elsewhere.
  useHotkeys([["mod+K", () => show((now) => (now === "palette" ? null : "palette"))]], []);
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 208, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={0}
    >
      <a className="wr-skip" href="#main">
        Skip to the page
      </a>
      <AppShell.Header style={{ background: "var(--wr-surface)", borderColor: "var(--wr-line)" }}>
        <Group h="100%" px={{ base: "xs", sm: "md" }} justify="space-between" wrap="nowrap">
          <Link to="/" className="wr-brand">
            <img src="/windrow.svg" width={24} height={24} alt="Windrow" />
            <span aria-hidden="true">Windrow</span>
          </Link>
          <div className="wr-head">
            <Button
              variant="default"
              color="gray"
              leftSection={<SearchIcon size={14} />}
              rightSection={<kbd aria-hidden="true">Ctrl K</kbd>}
              onClick={() => show("palette")}
              aria-keyshortcuts="Control+K Meta+K"
              visibleFrom="sm"
            >
              Go to
            </Button>
            <Balance me={me} />
            <New roles={me.roles} />
            <Group gap={4} wrap="nowrap">
              <ActionIcon onClick={() => show("palette")} aria-label="Search" hiddenFrom="sm">
                <SearchIcon />
              </ActionIcon>
              <Bell me={me} />
              <Tooltip label="Keys (?)">
                <ActionIcon onClick={help} aria-label="Keys" aria-keyshortcuts="?" visibleFrom="sm">
                  <KeyboardIcon />
                </ActionIcon>
              </Tooltip>
              <Scheme />
            </Group>
            <UserMenu me={me} />
          </div>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p={8} style={{ background: "var(--wr-surface)", borderColor: "var(--wr-line)" }}>
        <Navigation roles={me.roles} product={product} />
        <Text size="xs" className="wr-quiet" mt="auto" px={10} pb={4}>
          <a className="wr-underlined" href="/docs">
            Documentation
          </a>
          <br />
          Windrow {plain(me.master.version)}
        </Text>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <Offline />
        {closed ? <Closed page={closed} me={me} /> : <Outlet key={me.account.id} />}
      </AppShell.Main>
      <PhoneBar roles={me.roles} product={product} isOpened={opened} more={toggle} />
      <SignInAgain me={me} />
      {shown === "palette" && <Palette me={me} close={hide} help={help} act={act} />}
      {acting && (
        <Suspense fallback={null}>
          <PaletteAct {...acting} close={() => setActing(null)} />
        </Suspense>
      )}
      {shown === "help" && <Help roles={me.roles} close={hide} />}
    </AppShell>
  );
}

/** `g` and then a letter within a second and a half goes to a screen; `?` shows the keys. */
function useJumps(me: Me, help: () => void) {
  const navigate = useNavigate();
  useEffect(() => {
    let armed = 0;
    const typed = (event: KeyboardEvent) => {
      if (!isShortcut(event)) return;
      if (event.key === "?") {
        event.preventDefault();
        help();
      } else if (event.key === "g") {
        armed = event.timeStamp;
      } else if (armed && event.timeStamp - armed < 1500) {
        armed = 0;
        const page = menuFor(me.roles).find((one) => one.menu.key === event.key);
        if (page) void navigate({ to: page.path });
      }
    };
    window.addEventListener("keydown", typed);
    return () => window.removeEventListener("keydown", typed);
  }, [navigate, me.roles, help]);
}

/**
 * A new page names the tab, and who reads by ear or keyboard starts at its beginning instead of at the link that
 * was left.
 */
function useArrival(path: string) {
  const before = useRef(path);
  useEffect(() => {
    document.title = titleOf(path);
    if (before.current === path) return;
    before.current = path;
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [path]);
}

function Balance({ me }: { me: Me }) {
  if (!me.roles.some((role) => HAVE_MONEY.includes(role))) return null;
  return (
    <Group gap={8} wrap="nowrap" className="wr-balance">
      <Text size="sm">
        <span className="wr-quiet">Balance </span>
        <strong data-testid="balance">{amount(me.balance.amount)}</strong> <span>{plain(me.balance.currency)}</span>
      </Text>
      {me.master.currency_is_test && <TestMoney />}
    </Group>
  );
}

const SCHEMES: readonly (readonly [MantineColorScheme, string, ComponentType<{ size?: number }>])[] = [
  ["auto", "System", AutoIcon],
  ["light", "Light", SunIcon],
  ["dark", "Dark", MoonIcon],
];

function Scheme() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const at = Math.max(
    0,
    SCHEMES.findIndex(([name]) => name === colorScheme),
  );
  const [, label, Icon] = SCHEMES[at] ?? SCHEMES[0]!;
  const [next, nextLabel] = SCHEMES[(at + 1) % SCHEMES.length]!;
  useHotkeys([["mod+J", () => setColorScheme(next)]]);
  return (
    <Tooltip label={`Colours: ${label.toLowerCase()}`}>
      <ActionIcon
        onClick={() => setColorScheme(next)}
        aria-label={`Colours: ${label}. Switch to: ${nextLabel}`}
        visibleFrom="sm"
      >
        <Icon />
      </ActionIcon>
    </Tooltip>
  );
}

function Offline() {
  const since = useSyncExternalStore(connection.subscribe, connection.since);
  const now = useNow();
  if (since === null) return null;
  return (
    <div className="wr-offline" role="status">
      <span>
        Connection lost {duration(Math.max(0, (now - since) / 1000))} ago: the Master does not answer. You see the last
        data; the page reconnects by itself.
      </span>
      <button type="button" onClick={() => connection.probeNow()}>
        Try now
      </button>
    </div>
  );
}

/** In place of a page whose requests would all be refused. */
function Closed({ page, me }: { page: MenuPage; me: Me }) {
  return (
    <div className="wr-page">
      <PageHead title={page.name} />
      <Empty
        title="This page is for others"
        action={
          <Link className="wr-link" to="/">
            Go to your home page
          </Link>
        }
      >
        {page.name} needs one of these roles: {roleNames(page.menu.roles ?? [])}. In the project{" "}
        {plain(me.account.name)} you have: {roleNames(me.roles)}. Ask an admin, or choose another project in the menu at
        the top right.
      </Empty>
    </div>
  );
}

export function Lost() {
  return (
    <div className="wr-page">
      <Empty
        title="There is no such page"
        action={
          <Link className="wr-link" to="/">
            Go to your home page
          </Link>
        }
      >
        This page does not exist, or what it showed was deleted.
      </Empty>
    </div>
  );
}

/** In place of a page that threw while it was drawn; the rest of the console goes on. */
export function PageFailed({ error, reset }: { error: unknown; reset?: () => void }) {
  const again = () => {
    queryClient.removeQueries({ type: "inactive" }); // the page's own: what it could not draw is asked for anew
    reset?.();
  };
  return (
    <div className="wr-page">
      <PageHead title="This page failed" />
      <Text size="sm" mb="sm">
        The console could not show this page. Nothing was changed by it. Try again, or go to another page.
      </Text>
      <ProblemNote error={error} retry={again} />
    </div>
  );
}
