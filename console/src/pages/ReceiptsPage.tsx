// What was paid: the list, and one receipt to check or to print.
import { Button, Group, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { receipt as receiptQuery, receipts as receiptsQuery } from "../api/queries.ts";
import type { Receipt } from "../api/types.ts";
import type { CsvColumn } from "../csv.ts";
import { amount, count, DASH, duration, exact, money, plain, shortIds, words } from "../format.ts";
import { CsvButton } from "../parts/Csv.tsx";
import { PrintIcon } from "../parts/icons.tsx";
import { Empty, Facts, Id, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Simulated, TestMoney, When } from "../parts/state.tsx";

const COLUMNS: readonly CsvColumn<Receipt>[] = [
  { name: "id", value: (row) => row.id },
  { name: "cluster_id", value: (row) => row.cluster_id },
  { name: "cluster_name", value: (row) => row.cluster_name },
  { name: "simulated", value: (row) => row.simulated },
  { name: "tier", value: (row) => row.tier },
  { name: "price_per_hour", value: (row) => row.price_per_hour },
  { name: "running_seconds", value: (row) => row.running_seconds },
  { name: "amount", value: (row) => row.amount },
  { name: "currency", value: (row) => row.currency },
  { name: "started_at", value: (row) => row.started_at },
  { name: "ended_at", value: (row) => row.ended_at },
];

export function ReceiptsPage() {
  const query = useQuery(receiptsQuery());
  const items = query.data?.items ?? [];
  return (
    <div className="wr-page">
      <PageHead
        title="Receipts"
        beside={<TestMoney />}
        actions={
          <CsvButton
            of="the receipts"
            name="windrow-receipts"
            columns={COLUMNS}
            rows={() => items}
            disabled={items.length === 0}
          />
        }
      />
      <Panel bare label="Receipts">
        <Loaded query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Empty
                title="No receipts yet"
                command="windrow run -- python -c 'print(6 * 7)'"
                action={
                  <Button component={Link} to="/clusters/new">
                    New cluster
                  </Button>
                }
              >
                A receipt is written for each cluster, from the running seconds that its host signed.
              </Empty>
            ) : (
              <div className="wr-scroll">
                <table className="wr-table">
                  <thead>
                    <tr>
                      <th>Cluster</th>
                      <th>Tier</th>
                      <th className="num">Price per hour</th>
                      <th className="num">Signed running</th>
                      <th className="num">Amount</th>
                      <th>Ended</th>
                      <th>Receipt</th>
                    </tr>
                  </thead>
                  <tbody>
                    {items.map((one) => (
                      <tr key={one.id}>
                        <td>
                          <Link className="wr-link" to="/receipts/$receiptId" params={{ receiptId: one.id }}>
                            {plain(one.cluster_name)}
                          </Link>
                          {one.simulated && (
                            <>
                              {" "}
                              <Simulated />
                            </>
                          )}
                        </td>
                        <td>{plain(one.tier)}</td>
                        <td className="num">{amount(one.price_per_hour, 2, 4)}</td>
                        <td className="num">{duration(one.running_seconds)}</td>
                        <td className="num">{money(one.amount, one.currency, 2, 8)}</td>
                        <td>{one.ended_at ? <When at={one.ended_at} /> : "still running"}</td>
                        <td>
                          <Id id={one.id} />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )
          }
        </Loaded>
      </Panel>
    </div>
  );
}

export function ReceiptPage() {
  const { receiptId } = useParams({ from: "/receipts/$receiptId" });
  const query = useQuery(receiptQuery(receiptId));
  return (
    <div className="wr-page" style={{ maxWidth: 1040 }}>
      <Loaded query={query} lines={10}>
        {(receipt) => <ReceiptView receipt={receipt} />}
      </Loaded>
    </div>
  );
}

function ReceiptView({ receipt }: { receipt: Receipt }) {
  const sum = (text: string | null) => money(text, receipt.currency, 2, 8);
  return (
    <>
      <PageHead
        above={
          <Link className="wr-link wr-no-print" to="/receipts">
            Receipts
          </Link>
        }
        title={`Receipt: ${plain(receipt.cluster_name)}`}
        beside={
          <>
            {receipt.test_money && <TestMoney />}
            {receipt.simulated && <Simulated />}
          </>
        }
        actions={
          <>
            <Link
              className="wr-link"
              to="/events"
              search={{ subject: receipt.rental_id }}
              aria-label="Events of this rental"
            >
              Events
            </Link>
            <Button variant="default" leftSection={<PrintIcon />} onClick={() => window.print()}>
              Print
            </Button>
          </>
        }
      />
      <div className="wr-stack">
        <Panel label="Sum">
          <Group justify="space-between" align="flex-start" gap="xl">
            <div>
              <Text className="wr-quiet" size="sm">
                {receipt.ended_at ? "Amount" : "Amount so far"}
              </Text>
              <Text fw={650} fz={28} lh={1.2} data-testid="amount">
                {sum(receipt.amount)}
              </Text>
              {receipt.test_money && (
                <Text size="sm" className="wr-quiet">
                  Test money: it buys nothing outside this installation, and nobody owes it.
                </Text>
              )}
            </div>
            <Facts
              rows={[
                ["Price per hour", sum(receipt.price_per_hour)],
                ["Signed running time", `${receipt.running_seconds} s (${duration(receipt.running_seconds)})`],
                ["Tier", plain(receipt.tier)],
                ["Started", exact(receipt.started_at)],
                ["Ended", receipt.ended_at ? exact(receipt.ended_at) : "still running"],
                ...(receipt.end_reason ? [["Ended because", plain(receipt.end_reason)] as const] : []),
                ["Balance after", sum(receipt.balance_after)],
              ]}
            />
          </Group>
          <Text size="sm" className="wr-quiet" mt="md">
            Amount = price per hour × signed running seconds ÷ 3600, rounded down. The seconds are those the host signed
            and the Master checked; nothing else is charged.
          </Text>
        </Panel>
        <Panel title="Signed running time" bare>
          <div className="wr-scroll">
            <table className="wr-table">
              <thead>
                <tr>
                  <th>Workload</th>
                  <th>Host</th>
                  <th className="num">Seconds</th>
                  <th className="num">Signed receipts</th>
                  <th>Numbers</th>
                  <th>Final</th>
                  <th>Ended because</th>
                  <th className="num">Amount</th>
                </tr>
              </thead>
              <tbody>
                {receipt.lines.map((line) => (
                  <tr key={line.workload_id}>
                    <td>
                      <Id id={line.workload_id} />
                    </td>
                    <td>
                      <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: line.host_id }}>
                        {plain(line.host_id.slice(-8))}
                      </Link>
                    </td>
                    <td className="num">{line.running_seconds}</td>
                    <td className="num">{count(line.receipts)}</td>
                    <td>{line.first_number === null ? DASH : `${line.first_number} to ${line.last_number ?? DASH}`}</td>
                    <td>{line.final ? "yes" : "no"}</td>
                    <td className="wr-break">{plain([line.end_reason, line.note].filter(Boolean).join("; "))}</td>
                    <td className="num">{amount(line.amount, 2, 8)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
        <Panel title="Postings" bare>
          <div className="wr-scroll">
            <table className="wr-table wr-table-tight">
              <thead>
                <tr>
                  <th>When</th>
                  <th>Kind</th>
                  <th>From</th>
                  <th>To</th>
                  <th className="num">Amount</th>
                  <th>Id</th>
                </tr>
              </thead>
              <tbody>
                {receipt.transfers.map((transfer) => (
                  <tr key={transfer.id}>
                    <td>
                      <time dateTime={transfer.at}>{exact(transfer.at)}</time>
                    </td>
                    <td title={transfer.memo}>{words(transfer.kind)}</td>
                    <td className="wr-mono" title={plain(transfer.debit)}>
                      {shortIds(transfer.debit)}
                    </td>
                    <td className="wr-mono" title={plain(transfer.credit)}>
                      {shortIds(transfer.credit)}
                    </td>
                    <td className="num">{amount(transfer.amount, 2, 8)}</td>
                    <td>
                      <Id id={transfer.id} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </Panel>
        <Text size="xs" className="wr-quiet wr-break">
          Receipt {plain(receipt.id)} · cluster{" "}
          <Link to="/clusters/$clusterId" params={{ clusterId: receipt.cluster_id }}>
            {plain(receipt.cluster_id)}
          </Link>
        </Text>
      </div>
    </>
  );
}
