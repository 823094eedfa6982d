// A choice of one among cards, by mouse or arrow keys.
import { Radio } from "@mantine/core";
import type { ReactNode } from "react";

interface Props<Id extends string> {
  label: string;
  value: Id | "";
  change: (id: Id) => void;
  cards: readonly { id: Id; name: string; about: ReactNode; aside?: ReactNode }[];
}

export function Cards<Id extends string>({ label, value, change, cards }: Props<Id>) {
  return (
    <Radio.Group
      label={label}
      labelProps={{ className: "wr-unseen" }}
      value={value}
      onChange={(id) => change(id as Id)}
    >
      <div className="wr-picks">
        {cards.map(({ id, name, about, aside }) => (
          <Radio.Card key={id} value={id} className="wr-pick">
            <span className="wr-pick-head">
              <strong>{name}</strong>
              {aside}
            </span>
            <span className="wr-pick-about">{about}</span>
          </Radio.Card>
        ))}
      </div>
    </Radio.Group>
  );
}
