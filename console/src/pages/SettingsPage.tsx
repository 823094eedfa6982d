// What one chooses for oneself: colours; who one is here; where one is signed in.
import { Button, type MantineColorScheme, SegmentedControl, Stack, Text, useMantineColorScheme } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { remove } from "../api/client.ts";
import { me as meQuery, sessions as sessionsQuery } from "../api/queries.ts";
import type { SessionRow } from "../api/types.ts";
import { listed, money, plain } from "../format.ts";
import { Empty, Facts, Id, Loaded, PageHead, Panel, ProblemNote } from "../parts/page.tsx";
import { TestMoney, When } from "../parts/state.tsx";
import { signOut } from "../session.ts";

export function SettingsPage() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const me = useQuery(meQuery);
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
                { value: "auto", label: "As the system" },
                { value: "light", label: "Light" },
                { value: "dark", label: "Dark" },
              ]}
            />
            <Text size="sm" className="wr-quiet">
              Kept in this browser. Where the system asks for less motion, nothing here moves.
            </Text>
          </Stack>
        </Panel>
        <Panel
          title="Account"
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
                ["Roles here", listed(me.data.roles)],
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
                ["Installation", `Windrow ${plain(me.data.master.version)}, term ${me.data.master.epoch}`],
              ]}
            />
          )}
        </Panel>
        <Panel title="Signed in" bare>
          <Sessions />
        </Panel>
      </div>
    </div>
  );
}

function Sessions() {
  const query = useQuery(sessionsQuery);
  return (
    <Loaded query={query}>
      {(items) =>
        items.length === 0 ? (
          <Empty title="No browser is signed in">This page was opened with a token and no session.</Empty>
        ) : (
          <div className="wr-scroll" tabIndex={0} role="region" aria-label="Table of sessions">
            <table className="wr-table">
              <thead>
                <tr>
                  <th scope="col">Browser</th>
                  <th scope="col">Token</th>
                  <th scope="col">Signed in</th>
                  <th scope="col">Last used</th>
                  <th scope="col">Ends</th>
                  <th scope="col">
                    <span className="wr-unseen">Do</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {items.map((session) => (
                  <Session key={session.id} session={session} />
                ))}
              </tbody>
            </table>
          </div>
        )
      }
    </Loaded>
  );
}

function Session({ session }: { session: SessionRow }) {
  const client = useQueryClient();
  const end = useMutation({
    mutationFn: () => (session.current ? signOut() : remove(`/sessions/${encodeURIComponent(session.id)}`)),
    onSuccess: () => void client.invalidateQueries({ queryKey: ["sessions"] }),
  });
  const browser = plain(session.browser ?? "A browser");
  return (
    <tr>
      <td className="wr-break">
        {browser}
        {session.current && (
          <>
            {" "}
            <span className="wr-mark">this one</span>
          </>
        )}
        {end.error && <ProblemNote error={end.error} />}
      </td>
      <td>{plain(session.token_name)}</td>
      <td>
        <When at={session.created_at} />
      </td>
      <td>
        <When at={session.last_used_at} />
      </td>
      <td>
        <When at={session.expires_at} />
      </td>
      <td className="num">
        <Button
          variant="subtle"
          color="red"
          loading={end.isPending}
          onClick={() => end.mutate()}
          aria-label={`${session.current ? "Sign out here" : "End the session"}: ${browser}`}
        >
          {session.current ? "Sign out" : "End"}
        </Button>
      </td>
    </tr>
  );
}
