// A picture of the jobs before and after a job, linked to their pages.
import { Text } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import type { Job } from "../api/types.ts";
import { DASH, plain, words } from "../parts/format.ts";
import { Panel } from "../parts/page.tsx";
import { type GraphNode, graphOf } from "./graph.ts";

const WIDE = 132,
  HIGH = 40,
  GAP_X = 34,
  GAP_Y = 12,
  NAME_MOST = 17;

const left = (node: GraphNode) => node.column * (WIDE + GAP_X);
const top = (node: GraphNode) => node.row * (HIGH + GAP_Y);
const short = (name: string) => (name.length > NAME_MOST ? `${name.slice(0, NAME_MOST - 1)}…` : name);

export function JobGraph({ job, known }: { job: Job; known: readonly Job[] }) {
  const graph = graphOf(job, known);
  if (graph.nodes.length === 1) return null;
  const places = new Map(graph.nodes.map((node) => [node.id, node]));
  const width = graph.columns * (WIDE + GAP_X) - GAP_X + 2,
    height = graph.rows * (HIGH + GAP_Y) - GAP_Y + 2;
  return (
    <Panel title="Jobs before and after">
      <div className="wr-scroll" data-testid="job-graph">
        <svg
          width={width}
          height={height}
          viewBox={`-1 -1 ${width} ${height}`}
          role="group"
          aria-label={`Jobs around ${plain(job.name)}`}
        >
          <defs>
            <marker id="wr-arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" markerHeight="6" orient="auto">
              <path d="M0 0 6 3 0 6z" fill="currentColor" />
            </marker>
          </defs>
          {graph.edges.map(({ from, to }) => {
            const [a, b] = [places.get(from)!, places.get(to)!];
            const [x, y, ex, ey] = [left(a) + WIDE, top(a) + HIGH / 2, left(b), top(b) + HIGH / 2];
            return (
              <path
                key={`${from} ${to}`}
                d={`M${x} ${y}C${x + GAP_X / 2} ${y} ${ex - GAP_X / 2} ${ey} ${ex} ${ey}`}
                fill="none"
                stroke="currentColor"
                opacity={0.5}
                markerEnd="url(#wr-arrow)"
              />
            );
          })}
          {graph.nodes.map((node) => (
            <Box key={node.id} node={node} own={node.id === job.id} />
          ))}
        </svg>
      </div>
      {graph.cut && (
        <Text size="xs" className="wr-quiet">
          More jobs are connected than are drawn here.
        </Text>
      )}
    </Panel>
  );
}

function Box({ node, own }: { node: GraphNode; own: boolean }) {
  const said = node.state === null ? "not among the latest jobs" : words(node.state);
  return (
    <Link
      to="/jobs/$jobId"
      params={{ jobId: node.id }}
      aria-label={`${plain(node.name)}: ${said}`}
      aria-current={own ? "page" : undefined}
    >
      <g transform={`translate(${left(node)} ${top(node)})`}>
        <title>{`${plain(node.name)}: ${said}`}</title>
        <rect
          width={WIDE}
          height={HIGH}
          rx={6}
          fill="var(--mantine-color-body)"
          stroke="currentColor"
          strokeWidth={own ? 2 : 1}
          opacity={own ? 1 : 0.8}
        />
        <text x={10} y={17} fontSize={12} fontWeight={own ? 650 : 500} fill="var(--mantine-color-text)">
          {short(plain(node.name))}
        </text>
        <text x={10} y={32} fontSize={11} fill="var(--wr-quiet)">
          {node.state === null ? DASH : words(node.state)}
        </text>
      </g>
    </Link>
  );
}
