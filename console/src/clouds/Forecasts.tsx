// The cost of ended purchases beside what was forecast of each when it was decided.
import { Group, Text } from "@mantine/core";
import type { CloudPurchase } from "../api/types.ts";
import { count } from "../parts/format.ts";
import { Figure, Panel } from "../parts/page.tsx";
import { againstForecast } from "./clouds.ts";

const HEIGHT = 72;
/** What cost more than this many times its forecast is drawn at the edge. */
const MOST = 2;
const y = (ratio: number): number => HEIGHT * (1 - Math.min(ratio, MOST) / MOST);

export function Forecasts({ purchases }: { purchases: readonly CloudPurchase[] }) {
  const { points, mean, near } = againstForecast(purchases);
  if (points.length === 0)
    return (
      <Panel title="Cost against forecast">
        <Text size="sm" className="wr-quiet">
          None of these purchases had a forecast and a cost. A purchase has a forecast where its job says
          --max-duration, or jobs of its name ran before.
        </Text>
      </Panel>
    );
  return (
    <Panel title="Cost against forecast">
      <Group className="wr-figures" mb="xs" data-testid="forecast">
        <Figure label="times the forecast, in the mean" value={mean.toFixed(2)} />
        <Figure label="within 15 % of it" value={`${count(near)} of ${count(points.length)}`} />
      </Group>
      <svg
        width="100%"
        height={HEIGHT}
        role="img"
        aria-label={`Cost of each purchase against its forecast, the latest at the right; mean ${mean.toFixed(2)}`}
        style={{ display: "block", overflow: "visible" }}
      >
        <rect y={y(1.15)} width="100%" height={y(0.85) - y(1.15)} fill="var(--wr-sunken)" />
        <line x1="0" x2="100%" y1={y(1)} y2={y(1)} stroke="var(--wr-line-strong)" strokeDasharray="4 3" />
        <line x1="0" x2="100%" y1={HEIGHT} y2={HEIGHT} stroke="var(--wr-line)" />
        {points.map(({ id, ratio }, at) => (
          <circle
            key={id}
            cx={`${(100 * (at + 0.5)) / points.length}%`}
            cy={y(ratio)}
            r="3.5"
            fill="var(--wr-meter-fill)"
          >
            <title>{`${ratio.toFixed(2)} times its forecast`}</title>
          </circle>
        ))}
      </svg>
      <Text size="xs" className="wr-quiet" mt={4}>
        A point for each purchase, the latest at the right. The dashed line: it cost what was forecast. A machine that
        took other work of its project, too, cost more.
      </Text>
    </Panel>
  );
}
