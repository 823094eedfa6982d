// The spans of time that charts reach back, and the control that chooses one.
import { SegmentedControl } from "@mantine/core";

export interface Span {
  name: string;
  seconds: number;
}

const SHORT: readonly Span[] = [
  { name: "5 min", seconds: 300 },
  { name: "15 min", seconds: 900 },
];
/** Of what is measured every ten seconds. */
export const LONG: readonly Span[] = [
  { name: "1 h", seconds: 3600 },
  { name: "6 h", seconds: 6 * 3600 },
  { name: "24 h", seconds: 24 * 3600 },
  { name: "7 d", seconds: 7 * 86_400 },
  { name: "30 d", seconds: 30 * 86_400 },
];
const ALL = [...SHORT, ...LONG];

export const spanNamed = (name: string | undefined): Span => ALL.find((one) => one.name === name) ?? ALL[1]!;

/** Chooses how far back charts reach. */
export function SpanControl({
  span,
  onChange,
  spans = ALL,
}: {
  span: Span;
  onChange: (name: string) => void;
  spans?: readonly Span[];
}) {
  return (
    <SegmentedControl
      size="xs"
      className="wr-spans"
      aria-label="Span of time"
      value={span.name}
      onChange={onChange}
      data={spans.map((one) => one.name)}
    />
  );
}
