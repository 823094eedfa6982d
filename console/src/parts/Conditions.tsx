// What is not as it should be on a host or in the market itself, each condition with its remedy.
import type { Condition } from "../api/types.ts";
import { plain } from "./format.ts";
import { Remedy } from "./Remedy.tsx";
import { When } from "./state.tsx";

/** The page of a place in the source tree: docs/conditions.md#gpulost. */
export const docsOf = (runbook: string): string => `/${runbook.replace(/\.md(?=#|$)/, "")}`;

export function Conditions({ found }: { found: readonly Condition[] }) {
  return found.map((one) => (
    <div key={one.code} className={one.severity === "info" ? "wr-note wr-note-calm" : "wr-note"}>
      <strong>
        {one.about && `${plain(one.about)}: `}
        {plain(one.title)}
      </strong>
      <span className="wr-break">
        {plain(one.detail)}{" "}
        <span className="wr-quiet">
          What to do: <Remedy text={one.remedy} />{" "}
          <a className="wr-underlined" href={docsOf(one.runbook)} target="_blank" rel="noopener">
            More
          </a>
          . Began <When at={one.since} />.
        </span>
      </span>
    </div>
  ));
}
