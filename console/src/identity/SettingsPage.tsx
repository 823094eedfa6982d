// The settings page: colours, the own user, the project, its browser sessions.
import { Button, type MantineColorScheme, SegmentedControl, Stack, Text, useMantineColorScheme } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { AlertMail } from "../alerts/AlertMail.tsx";
import { remove } from "../api/client.ts";
import { cli as cliQuery, me as meQuery, sessions as sessionsQuery } from "../api/queries.ts";
import type { SessionRow } from "../api/types.ts";
import { money, plain } from "../parts/format.ts";
import { Empty, Facts, Id, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { TestMoney, When } from "../parts/state.tsx";
import { actions, moment } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import type { Column } from "../tables/table.ts";
import { browserName } from "./account.ts";
import { CommandLine } from "./CommandLine.tsx";
import { Identities } from "./Identities.tsx";
import { roleNames } from "./roles.ts";
import { signOut } from "./session.ts";
import { YourAccount } from "./YourAccount.tsx";

const browserOf = (session: SessionRow): string => browserName(plain(session.browser ?? "A browser"));

export function SettingsPage() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const me = useQuery(meQuery);
  const hasLine = useQuery(cliQuery).data?.command != null; // null: this Master serves no HTTPS
  return (
    <div className="wr-page" style={{ maxWidth: 980 }}>
      <PageHead title="Settings" />
      <div className="wr-stack">
        <Panel title="Colours">
          <Stack gap="xs" align="flex-start">
            <SegmentedControl
              aria-label="Colours"
              value={colorScheme}
              onChange={(scheme) => setColorScheme(scheme as MantineColorScheme)}
              data={[
                { value: "auto", label: "System" },
                { value: "light", label: "Light" },
                { value: "dark", label: "Dark" },
              ]}
            />
            <Text size="sm" className="wr-quiet">
              Kept in this browser. Follows the system's setting for reduced motion.
            </Text>
          </Stack>
        </Panel>
        {me.data?.user && <YourAccount />}
        {me.data?.user && <Identities />}
        {me.data?.user && <AlertMail />}
        <Panel
          title={me.data?.user ? "Project" : "Account"}
          actions={
            <Button variant="default" onClick={() => void signOut()}>
              Sign out
            </Button>
          }
        >
          {me.data && (
            <Facts
              rows={[
                ["Name", plain(me.data.account.name)],
                [
                  "Id",
                  <span key="i">
                    <Id id={me.data.account.id} /> ·{" "}
                    <Link
                      className="wr-link"
                      to="/events"
                      search={{ subject: me.data.account.id }}
                      aria-label="Events of the account"
                    >
                      Events
                    </Link>
                  </span>,
                ],
                ["Roles here", roleNames(me.data.roles)],
                [
                  "Balance",
                  <span key="b">
                    {money(me.data.balance.amount, me.data.balance.currency)}{" "}
                    {me.data.master.currency_is_test && <TestMoney />}
                  </span>,
                ],
                [
                  "Token",
                  <span key="t">
                    {plain(me.data.token.name)}
                    {me.data.token.expires_at && (
                      <>
                        , ends <When at={me.data.token.expires_at} />
                      </>
                    )}{" "}
                    ·{" "}
                    <Link className="wr-link" to="/tokens">
                      Tokens
                    </Link>
                  </span>,
                ],
                ["Installation", `Windrow ${plain(me.data.master.version)}, leader term ${me.data.master.epoch}`],
              ]}
            />
          )}
        </Panel>
        {hasLine && (
          <Panel title="Command line">
            <CommandLine>
              This installs <code>windrow</code> on your machine, or the release of this Master in its place, and says
              how to sign in.
            </CommandLine>
          </Panel>
        )}
        <Panel title="Signed in" bare>
          <Sessions />
        </Panel>
      </div>
    </div>
  );
}

const SESSION_COLUMNS: readonly Column<SessionRow>[] = [
  {
    id: "browser",
    name: "Browser",
    value: browserOf,
    cell: (row) => (
      <span className="wr-break" title={plain(row.browser)}>
        {browserOf(row)}
        {row.current && (
          <>
            {" "}
            <span className="wr-mark">this one</span>
          </>
        )}
      </span>
    ),
  },
  { id: "address", name: "From", value: (row) => row.address },
  { id: "token_name", name: "Token", value: (row) => row.token_name },
  moment("created_at", "Signed in", (row) => row.created_at),
  moment("last_used_at", "Last used", (row) => row.last_used_at),
  moment("expires_at", "Ends", (row) => row.expires_at),
  actions((row) => <EndSession session={row} />),
];

function Sessions() {
  const query = useQuery(sessionsQuery);
  return (
    <DataTable
      of={["session", "sessions"]}
      columns={SESSION_COLUMNS}
      id={(row) => row.id}
      rows={query.data}
      query={query}
      bare
      empty={<Empty title="No browser is signed in">This page was opened with a token and no session.</Empty>}
    />
  );
}

function EndSession({ session }: { session: SessionRow }) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: () => (session.current ? signOut() : remove(`/sessions/${encodeURIComponent(session.id)}`)),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["sessions"] }),
  });
  return (
    <>
      <Button
        variant="subtle"
        color="red"
        loading={end.isPending}
        onClick={() => end.mutate()}
        aria-label={`${session.current ? "Sign out here" : "End the session"}: ${browserOf(session)}`}
      >
        {session.current ? "Sign out" : "End"}
      </Button>
      {end.error && <ProblemNote error={end.error} />}
    </>
  );
}
