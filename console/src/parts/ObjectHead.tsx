// The head of the page of one thing: the way up, its name, its state and id, and what can be done with it.
import { Text } from "@mantine/core";
import { Link, type LinkProps } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { plain } from "./format.ts";
import { Id, PageHead } from "./page.tsx";
import { Simulated, State } from "./state.tsx";
import type { Tone } from "./states.ts";

interface Props {
  /** The page that it is found on. */
  up: LinkProps & { name: string };
  title: string;
  state: string;
  tone?: Tone;
  reason?: string | null;
  simulated?: boolean;
  id: string;
  testId?: string;
  actions?: ReactNode;
}

export function ObjectHead({ up, title, state, tone, reason = null, simulated, id, testId = "state", actions }: Props) {
  const { name, ...link } = up;
  return (
    <PageHead
      above={
        <Link className="wr-link" {...link}>
          {plain(name)}
        </Link>
      }
      title={plain(title)}
      beside={
        <>
          <span data-testid={testId}>
            <State state={state} reason={reason} {...(tone ? { tone } : {})} />
          </span>
          {simulated && <Simulated />}
          <Text size="xs" className="wr-quiet">
            <Id id={id} />
          </Text>
        </>
      }
      actions={actions}
    />
  );
}
