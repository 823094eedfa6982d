// What is not as it should be on a host or in the market itself, each condition with its remedy.
import type { Condition } from "../api/types.ts";
import { plain, words } from "./format.ts";
import { When } from "./state.tsx";

export function Conditions({ found }: { found: readonly Condition[] }) {
  return found.map((one) => (
    <div key={one.code} className={one.severity === "info" ? "wr-note wr-note-calm" : "wr-note"}>
      <strong>
        {one.about && `${plain(one.about)}: `}
        {words(one.code.split(":")[0])}
      </strong>
      <span className="wr-break">
        {plain(one.detail)}{" "}
        <span className="wr-quiet">
          What to do: {plain(one.remedy)} Since <When at={one.since} />.
        </span>
      </span>
    </div>
  ));
}
