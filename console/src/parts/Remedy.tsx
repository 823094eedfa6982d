// What to do, in words, with the commands that stand in backticks set apart.
import { Fragment } from "react";
import { plain } from "./format.ts";

export function Remedy({ text }: { text: string }) {
  return plain(text)
    .split("`")
    .map((part, index) => (index % 2 ? <code key={index}>{part}</code> : <Fragment key={index}>{part}</Fragment>));
}
