// The list of receipts, and the page of one receipt to check or print.

import { Button, Group, Switch, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import { useState } from "react";
import { receipt as receiptQuery, receipts as receiptsQuery } from "../api/queries.ts";
import type { Receipt, ReceiptLine, ReceiptTransfer } from "../api/types.ts";
import { PageButton } from "../app/PageButton.tsx";
import { amount, count, DASH, duration, exact, money, plain, shortIds, words } from "../parts/format.ts";
import { PrintIcon } from "../parts/icons.tsx";
import { Empty, Facts, Loaded, PageHead, Panel } from "../parts/page.tsx";
import { Subject } from "../parts/Subject.tsx";
import { Simulated, TestMoney } from "../parts/state.tsx";
import { figure, identity, moment, Named, simulated } from "../tables/columns.tsx";
import { DataTable } from "../tables/DataTable.tsx";
import { usePaged } from "../tables/older.ts";
import type { Column } from "../tables/table.ts";

const COLUMNS: readonly Column<Receipt>[] = [
  {
    id: "cluster_name",
    name: "Machine",
    value: (row) => row.cluster_name,
    cell: (row) => (
      <Named isSimulated={row.simulated}>
        <Link className="wr-link" to="/receipts/$receiptId" params={{ receiptId: row.id }}>
          {plain(row.cluster_name)}
        </Link>
      </Named>
    ),
  },
  { id: "tier", name: "Tier", value: (row) => row.tier, facet: true, facetName: plain },
  figure(
    "price_per_hour",
    "Price per hour",
    (row) => row.price_per_hour,
    (price) => amount(price),
  ),
  figure("running_seconds", "Metered time", (row) => row.running_seconds, duration),
  {
    id: "amount",
    name: "Amount",
    number: true,
    value: (row) => row.amount,
    cell: (row) => money(row.amount, row.currency),
  },
  moment("ended_at", "Ended", (row) => row.ended_at, "still running"),
  identity((row) => row.id, { name: "Receipt" }),
  { id: "currency", name: "Currency", value: (row) => row.currency, optional: true },
  { ...moment("started_at", "Started", (row) => row.started_at), optional: true },
  simulated((row) => row.simulated),
  identity((row) => row.cluster_id, { id: "cluster_id", name: "Machine id", optional: true }),
];

export function ReceiptsPage() {
  const [withTests, showTests] = useState(false);
  const list = usePaged(receiptsQuery(undefined, withTests || undefined), (row) => row.id);
  return (
    <div className="wr-page">
      <PageHead title="Receipts" beside={<TestMoney />} />
      <Switch
        className="wr-no-print"
        mb="sm"
        label="Show acceptance tests of hosts"
        checked={withTests}
        onChange={(event) => showTests(event.currentTarget.checked)}
      />
      <Panel bare label="Receipts">
        <DataTable
          of={["receipt", "receipts"]}
          columns={COLUMNS}
          {...list}
          address
          empty={
            <Empty
              title="No receipts yet"
              command="windrow run -- python -c 'print(6 * 7)'"
              action={<PageButton to="/new">New machine</PageButton>}
            >
              A receipt is written for each machine, from the running seconds that its host signed.
            </Empty>
          }
        />
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

/** A receipt is the one place with all digits that the ledger has. */
const EXACT = 8;

const LINES: readonly Column<ReceiptLine>[] = [
  identity((line) => line.workload_id, { name: "Workload" }),
  {
    id: "host_id",
    name: "Host",
    value: (line) => line.host_id,
    cell: (line) => (
      <Link className="wr-link" to="/hosts/$hostId" params={{ hostId: line.host_id }}>
        {plain(line.host_id.slice(-8))}
      </Link>
    ),
  },
  figure("running_seconds", "Seconds", (line) => line.running_seconds, String),
  figure("receipts", "Signed receipts", (line) => line.receipts, count),
  {
    id: "numbers",
    name: "Numbers",
    value: (line) => line.first_number,
    cell: (line) => (line.first_number === null ? DASH : `${line.first_number} to ${line.last_number ?? DASH}`),
  },
  { id: "final", name: "Final", value: (line) => line.final },
  {
    id: "end_reason",
    name: "Ended because",
    value: (line) => [line.end_reason, line.note].filter(Boolean).join("; "),
  },
  figure(
    "amount",
    "Amount",
    (line) => line.amount,
    (text) => amount(text, EXACT),
  ),
];

const TRANSFERS: readonly Column<ReceiptTransfer>[] = [
  {
    id: "at",
    name: "When",
    value: (transfer) => transfer.at,
    cell: (transfer) => <time dateTime={transfer.at}>{exact(transfer.at)}</time>,
  },
  {
    id: "kind",
    name: "Kind",
    value: (transfer) => transfer.kind,
    cell: (transfer) => <span title={transfer.memo}>{words(transfer.kind)}</span>,
  },
  ...(["debit", "credit"] as const).map(
    (side): Column<ReceiptTransfer> => ({
      id: side,
      name: side === "debit" ? "From" : "To",
      value: (transfer) => transfer[side],
      cell: (transfer) => (
        <span className="wr-mono" title={plain(transfer[side])}>
          {shortIds(transfer[side])}
        </span>
      ),
    }),
  ),
  figure(
    "amount",
    "Amount",
    (transfer) => transfer.amount,
    (text) => amount(text, EXACT),
  ),
  identity((transfer) => transfer.id),
];

function ReceiptView({ receipt }: { receipt: Receipt }) {
  const sum = (text: string | null) => `${amount(text, EXACT)} ${plain(receipt.currency)}`;
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
                  Test money: it buys nothing outside this installation.
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
          <DataTable
            of={["workload", "workloads"]}
            columns={LINES}
            id={(line) => line.workload_id}
            rows={receipt.lines}
            bare
            empty={<Empty title="No host has signed anything yet" />}
          />
        </Panel>
        <Panel title="Postings" bare>
          <DataTable
            of={["posting", "postings"]}
            columns={TRANSFERS}
            id={(transfer) => transfer.id}
            rows={receipt.transfers}
            bare
            empty={<Empty title="Nothing was posted yet" />}
          />
        </Panel>
        <Text size="xs" className="wr-quiet wr-break">
          Receipt {plain(receipt.id)} · machine <Subject id={receipt.cluster_id} />
        </Text>
      </div>
    </>
  );
}
