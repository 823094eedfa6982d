// The search field of a list: `/` focuses it; the list is filtered shortly after the last key.
import { CloseButton, TextInput, Tooltip } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { isShortcut } from "../app/keys.ts";
import { SearchIcon } from "../parts/icons.tsx";

/** A text goes into the address, which has an end. */
const TEXT_MOST = 200;

interface FilterBoxProps {
  value: string;
  onChange: (text: string) => void;
  placeholder: string;
  help?: string;
  label?: string;
  width?: number;
  /** Milliseconds from the last key to the change. */
  restMs?: number;
}

export function FilterBox({
  value,
  onChange,
  placeholder,
  help,
  label = "Filter",
  width = 280,
  restMs = 250,
}: FilterBoxProps) {
  const [text, setText] = useState(value);
  const sent = useRef(value);
  const box = useRef<HTMLInputElement>(null);
  const tell = useRef(onChange); // a list that changes each second must not make the fingers wait each second
  tell.current = onChange;
  useEffect(() => {
    if (value !== sent.current) {
      sent.current = value;
      setText(value);
    }
  }, [value]);
  useEffect(() => {
    if (text === sent.current) return;
    const timer = setTimeout(() => {
      sent.current = text;
      tell.current(text);
    }, restMs);
    return () => clearTimeout(timer);
  }, [text, restMs]);
  useEffect(() => {
    const typed = (event: KeyboardEvent) => {
      if (event.key !== "/" || event.defaultPrevented || !isShortcut(event)) return; // the first list takes it
      event.preventDefault();
      box.current?.focus();
    };
    window.addEventListener("keydown", typed);
    return () => window.removeEventListener("keydown", typed);
  }, []);
  const field = (
    <TextInput
      ref={box}
      size="xs"
      w={width}
      aria-label={label}
      aria-keyshortcuts="/"
      placeholder={placeholder}
      leftSection={<SearchIcon size={14} />}
      rightSection={
        text ? (
          <CloseButton size="xs" aria-label="Clear filter text" onClick={() => setText("")} />
        ) : (
          <kbd aria-hidden="true">/</kbd>
        )
      }
      maxLength={TEXT_MOST}
      value={text}
      onChange={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => event.key === "Escape" && (text ? setText("") : box.current?.blur())}
    />
  );
  return help ? (
    <Tooltip
      label={help}
      multiline
      maw={340}
      position="bottom-start"
      events={{ hover: false, focus: true, touch: false }}
    >
      {field}
    </Tooltip>
  ) : (
    field
  );
}
