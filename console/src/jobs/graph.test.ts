import { expect, test } from "vitest";
import type { Job } from "../api/types.ts";
import { graphOf, NODES_MOST } from "./graph.ts";

const made = (id: string, after: string[] = [], state = "Succeeded") =>
  ({ id, name: `n-${id}`, state, request: { after } }) as Job;

test("a job stands to the right of all that it comes after", () => {
  const jobs = [made("a"), made("b", ["a"]), made("c", ["a"]), made("d", ["b", "c", "a"], "Running"), made("alone")];
  const graph = graphOf(jobs[1]!, jobs);
  expect(graph.nodes.map(({ id, column, row }) => [id, column, row])).toEqual([
    ["a", 0, 0],
    ["b", 1, 0],
    ["c", 1, 1],
    ["d", 2, 0],
  ]);
  expect(graph.edges).toHaveLength(5);
  expect([graph.columns, graph.rows, graph.cut]).toEqual([3, 2, false]);
});

test("a job that is not known is drawn by its id, without a state", () => {
  const graph = graphOf(made("b", ["gone"]), []);
  expect(graph.nodes).toEqual([
    { id: "b", name: "n-b", state: "Succeeded", column: 1, row: 0 },
    { id: "gone", name: "gone", state: null, column: 0, row: 0 },
  ]);
});

test("a job alone is one node, and a crowd is cut and says so", () => {
  expect(graphOf(made("a"), []).nodes).toHaveLength(1);
  const crowd = Array.from({ length: 100 }, (_, index) => made(`j${index}`, ["a"]));
  const graph = graphOf(made("a"), crowd);
  expect([graph.nodes.length, graph.cut]).toEqual([NODES_MOST, true]);
});

test("a ring, which the Master does not make, ends", () => {
  expect(graphOf(made("a", ["b"]), [made("b", ["a"])]).nodes).toHaveLength(2);
});
