// The start of a machine by phase: how long each took, as bars under each other.
import { Text } from "@mantine/core";
import type { Cluster } from "../api/types.ts";
import { duration, exact, percent, plain, words } from "../parts/format.ts";
import { Shape, useNow, When } from "../parts/state.tsx";
import { phasesOf } from "./startup.ts";

export function StartUp({ cluster }: { cluster: Cluster }) {
  const phases = phasesOf(cluster, useNow());
  return (
    <ol className="wr-steps" aria-label="Steps" data-testid="steps">
      {phases.map(({ step, tookMs, left, width, isGoing }, index) => {
        const tone = step.name === "failed" ? "bad" : isGoing ? "busy" : "ok";
        return (
          <li key={`${index} ${step.name}`} title={exact(step.at)}>
            <span className={`wr-state wr-tone-${tone}`}>
              <Shape tone={tone} />
            </span>
            <span className="wr-break">
              {words(step.name)}
              {isGoing && step.progress !== null && ` ${percent(step.progress)}`}
              {step.member && (
                <Text size="xs" className="wr-quiet wr-break">
                  {plain(step.member)}
                </Text>
              )}
              {step.detail && (
                <Text size="xs" className="wr-quiet wr-break">
                  {plain(step.detail)}
                </Text>
              )}
            </span>
            <span className="wr-quiet" style={{ fontSize: 12 }}>
              {index === phases.length - 1 && !isGoing ? (
                <span className="wr-unseen">
                  reached <When at={step.at} />
                </span>
              ) : tookMs >= 1000 ? (
                duration(Math.round(tookMs / 1000))
              ) : (
                "under 1 s"
              )}
            </span>
            <span className={`wr-fall wr-tone-${tone}`} aria-hidden="true">
              <i style={{ left: `${left}%`, width: `${width}%` }} />
            </span>
          </li>
        );
      })}
      {phases.length === 0 && (
        <li>
          <span className="wr-state wr-tone-busy">
            <Shape tone="busy" />
          </span>
          <span>{words(cluster.phase)}</span>
        </li>
      )}
    </ol>
  );
}
