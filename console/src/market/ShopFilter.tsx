// The shop's filter: a field for each thing of which there is something to choose, and the histogram of prices.
import { Button, Checkbox, Collapse, Group, NativeSelect, NumberInput, RangeSlider, Text } from "@mantine/core";
import { useDebouncedCallback, useDisclosure } from "@mantine/hooks";
import { useEffect, useState } from "react";
import type { MachineType } from "../api/types.ts";
import { amount, compareTexts, count, plain } from "../parts/format.ts";
import { Panel, TYPING_MS } from "../parts/page.tsx";
import {
  type Bin,
  binsOf,
  classOf,
  type Filter,
  gpusOf,
  HOURS_FIRST,
  hoursOf,
  isProcessors,
  memoriesOf,
  modelOf,
} from "./shop.ts";

interface Props {
  /** Of the whole market: the choices. */
  all: readonly MachineType[];
  /** What fits all but the range of prices. */
  anyPrice: readonly MachineType[];
  filter: Filter;
  change: (part: Filter) => void;
  clear: () => void;
}

type Choices = readonly (readonly [value: string, label: string])[];
const unique = (values: readonly string[]) => [...new Set(values)].sort(compareTexts);

export function ShopFilter({ all, anyPrice, filter, change, clear }: Props) {
  const gpus = all.filter((row) => !isProcessors(row));
  const classes = unique(gpus.map((row) => classOf(row).split(":")[0]!));
  const models = classes.map((one) => [one, modelOf({ tier: one, unit: "gpu" })] as const);
  const regions = unique(all.flatMap((row) => (row.region ? [row.region] : [])));
  const more = moreOf(all);
  const isMore = more.some(([name]) => filter[name]) || Boolean(filter.verified);
  const [opened, { toggle }] = useDisclosure(isMore);
  const select = (name: keyof Filter, label: string, choices: Choices) => (
    <NativeSelect
      key={name}
      label={label}
      value={filter[name] ?? ""}
      onChange={(event) => change({ [name]: event.currentTarget.value || undefined })}
      data={[
        { value: "", label: "any" },
        ...choices.map(([value, text]) => ({ value, label: text })),
        ...(filter[name] && !choices.some(([value]) => value === filter[name])
          ? [{ value: filter[name], label: plain(filter[name]) }]
          : []),
      ]}
    />
  );
  const bins = binsOf(anyPrice);
  return (
    <Panel label="Filter">
      <div role="search" aria-label="Machine types" className="wr-shop">
        <div className="wr-shop-fields">
          {models.length > 1 && select("gpu", "GPU", models)}
          {gpus.length > 0 &&
            select(
              "memory",
              "GPU memory from",
              memoriesOf(all).map((size) => [String(size), `${size} GiB`]),
            )}
          <Typed
            label="GPUs on one host"
            value={gpusOf(filter)}
            first={1}
            set={(gpus) => change({ gpus })}
            most={1024}
          />
          <Typed label="My hours" value={hoursOf(filter)} first={HOURS_FIRST} set={(hours) => change({ hours })} />
          {regions.length > 1 &&
            select(
              "region",
              "Region",
              regions.map((region) => [region, plain(region)]),
            )}
          <Checkbox
            label="Free now"
            checked={filter.free !== undefined}
            onChange={(event) => change({ free: event.currentTarget.checked ? "yes" : undefined })}
          />
        </div>
        <Collapse expanded={opened}>
          <div className="wr-shop-fields">
            {more.map(([name, label, choices]) => select(name, label, choices))}
            {all.some((row) => row.verified_hosts > 0) && (
              <Checkbox
                label="Verified hardware"
                checked={filter.verified !== undefined}
                onChange={(event) => change({ verified: event.currentTarget.checked ? "yes" : undefined })}
              />
            )}
          </div>
        </Collapse>
        {bins.length > 0 && <Prices bins={bins} filter={filter} change={change} />}
        <Group gap="xs">
          {more.length > 0 && (
            <Button variant="default" onClick={toggle} aria-expanded={opened}>
              {opened ? "Fewer filters" : "More filters"}
            </Button>
          )}
          {Object.keys(filter).length > 0 && (
            <Button variant="default" onClick={clear}>
              Clear the filter
            </Button>
          )}
        </Group>
      </div>
    </Panel>
  );
}

/** The further filters for which this market has data. */
function moreOf(all: readonly MachineType[]): (readonly [keyof Filter, string, Choices])[] {
  const some = (test: (row: MachineType) => boolean) => all.some(test);
  const drivers = unique(all.flatMap((row) => row.drivers)).reverse();
  const mbits = ["100", "500", "1000", "5000", "10000"].map((size) => [size, `${size} Mbit/s`] as const);
  const found: (readonly [keyof Filter, string, Choices] | false)[] = [
    some((row) => row.reliability !== null) && [
      "reliability",
      "Reliability from",
      ["90", "95", "99", "99.9"].map((part) => [part, `${part}%`]),
    ],
    some((row) => row.up_bps !== null) && ["up", "Upload from", mbits],
    some((row) => row.down_bps !== null) && ["down", "Download from", mbits],
    drivers.length > 1 && ["driver", "Driver from", drivers.map((driver) => [driver, plain(driver)])],
    some((row) => row.simulated) &&
      some((row) => !row.simulated) && [
        "source",
        "Hosts",
        [
          ["real", "real"],
          ["simulated", "simulated"],
        ],
      ],
  ];
  return found.filter((one) => one !== false);
}

interface TypedProps {
  label: string;
  value: number;
  /** Not in the address. */
  first: number;
  most?: number;
  set: (text: string | undefined) => void;
}

/** A number that is taken over when the last key was pressed. */
function Typed({ label, value, first, most = 100_000, set }: TypedProps) {
  const [text, setText] = useState<string | number>(value);
  useEffect(() => setText(value), [value]);
  const settle = useDebouncedCallback(
    (next: string | number) => set(Number(next) > 0 && Number(next) !== first ? String(next) : undefined),
    TYPING_MS,
  );
  return (
    <NumberInput
      label={label}
      min={1}
      max={most}
      value={text}
      onChange={(next) => {
        setText(next);
        settle(next);
      }}
    />
  );
}

const HIGH = 56;

/** How many GPUs there are at each price, and a range of it to choose. */
function Prices({ bins, filter, change }: { bins: readonly Bin[]; filter: Filter } & Pick<Props, "change">) {
  const [low, high] = [bins[0]!.from, bins.at(-1)!.to];
  const chosen: [number, number] = [
    Math.min(high, Math.max(low, Number(filter.from ?? low) || low)),
    Math.max(low, Math.min(high, Number(filter.to ?? high) || high)),
  ];
  const [range, setRange] = useState(chosen);
  const [from, to] = chosen;
  useEffect(() => setRange([from, to]), [from, to]);
  const top = Math.max(...bins.map((bin) => bin.total));
  const step = 100 / bins.length;
  const text = (price: number) => amount(price.toFixed(4));
  const said = bins.filter((bin) => bin.total > 0);
  const settle = ([least, most]: [number, number]) =>
    change({
      from: least > low ? String(Number(least.toFixed(4))) : undefined,
      to: most < high ? String(Number(most.toFixed(4))) : undefined,
    });
  return (
    <div className="wr-shop-prices">
      <Text size="sm" fw={600}>
        Price per GPU and hour: {text(range[0])} to {text(range[1])}
      </Text>
      <svg
        width="100%"
        height={HIGH}
        role="img"
        aria-label={`GPUs by price: ${said
          .map((bin) => `${text(bin.from)} to ${text(bin.to)}: ${count(bin.total)}, ${count(bin.free)} free`)
          .join("; ")}`}
      >
        {bins.map((bin, at) => {
          const height = (value: number) => (value > 0 ? Math.max(2, (value / top) * HIGH) : 0);
          const isIn = bin.to >= range[0] && bin.from <= range[1];
          return (
            <g key={bin.from} opacity={isIn ? 1 : 0.35}>
              <title>{`${text(bin.from)} to ${text(bin.to)}: ${bin.total} GPUs, ${bin.free} free`}</title>
              {(["total", "free"] as const).map((which) => (
                <rect
                  key={which}
                  x={`${at * step + step * 0.1}%`}
                  width={`${step * 0.8}%`}
                  y={HIGH - height(bin[which])}
                  height={height(bin[which])}
                  fill={which === "total" ? "var(--wr-meter-strong)" : "var(--wr-meter-fill)"}
                />
              ))}
            </g>
          );
        })}
      </svg>
      <RangeSlider
        min={low}
        max={high}
        step={(high - low) / 100}
        minRange={0}
        value={range}
        onChange={setRange}
        onChangeEnd={settle}
        label={text}
        size="sm"
        thumbFromLabel="Lowest price"
        thumbToLabel="Highest price"
      />
      <Text size="xs" className="wr-quiet">
        Strong colour: free now. Pale: rented.
      </Text>
    </div>
  );
}
