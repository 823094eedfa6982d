// The command palette: finds pages and things by typing, and does what the role may do.
import { Modal, TextInput } from "@mantine/core";
import { type KeyboardEvent, useCallback, useEffect, useId, useRef, useState } from "react";
import type { Me, Role } from "../api/types.ts";
import { SearchIcon } from "../parts/icons.tsx";
import { meant, verbsFor } from "./acts.ts";
import { type Choice, useChoices } from "./choices.ts";
import type { Act } from "./PaletteAct.tsx";

interface Props {
  me: Me;
  close: () => void;
  help: () => void;
  act: (act: Act) => void;
}

export function Palette({ me, close, help, act }: Props) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const type = useCallback((words: string) => {
    setText(words);
    setAt(0);
  }, []);
  const choices = useChoices(text, { me, help, act, type });
  const list = useId();
  const here = Math.min(at, Math.max(0, choices.length - 1));
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    // Braces: newer browsers answer a scroll with a promise, which is no clean-up.
    void box.current?.querySelector(`[data-choice="${here}"]`)?.scrollIntoView({ block: "nearest" });
  }, [here]);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    if (!choice.stays) close();
    choice.go();
  };
  const typed = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step && choices.length) {
      event.preventDefault();
      setAt((here + step + choices.length) % choices.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      choose(choices[here]);
    }
  };
  return (
    <Modal
      opened
      onClose={close}
      withCloseButton={false}
      padding={0}
      centered={false}
      yOffset="12vh"
      size={560}
      aria-label="Go to"
      transitionProps={{ duration: 0 }}
    >
      <TextInput
        value={text}
        onChange={(event) => type(event.currentTarget.value)}
        onKeyDown={typed}
        role="combobox"
        aria-label="Go to a page, host or machine, or do something"
        aria-expanded="true"
        aria-controls={list}
        aria-autocomplete="list"
        aria-activedescendant={choices.length ? `${list}-${here}` : undefined}
        placeholder={`Find anything${example(me.roles)}`}
        leftSection={<SearchIcon />}
        size="md"
        data-autofocus
        styles={{ input: { border: 0, borderBottom: "1px solid var(--wr-line)", borderRadius: 0 } }}
      />
      <div ref={box} id={list} role="listbox" aria-label="Choices" className="wr-palette">
        {choices.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field above takes the keys, as in every combobox
          <div
            key={choice.id}
            id={`${list}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === here}
            data-choice={index}
            className="wr-choice"
            onMouseMove={() => setAt(index)}
            onMouseDown={(event) => event.preventDefault()} // the field keeps the keys
            onClick={() => choose(choice)}
          >
            <span className="wr-quiet wr-choice-group">{choice.group}</span>
            <span className="wr-cut">{choice.name}</span>
            {choice.note && <span className="wr-quiet wr-cut">{choice.note}</span>}
          </div>
        ))}
      </div>
      <p className="wr-palette-foot wr-quiet" role="status">
        {choices.length ? (
          <>
            <kbd>↑</kbd> <kbd>↓</kbd> choose · <kbd>Enter</kbd> go · <kbd>Esc</kbd> close
          </>
        ) : (
          none(text)
        )}
      </p>
    </Modal>
  );
}

function example(roles: readonly Role[]): string {
  const words = verbsFor(roles).map((verb) => verb.word);
  if (words.length === 0) return "";
  return words.includes("drain") ? ", or type: drain rack7" : ", or type: stop lab";
}

function none(text: string): string {
  const verb = meant(text).verbs[0];
  return verb ? `Nothing to ${verb.word}${meant(text).name && ` by that name`}.` : "No results.";
}
