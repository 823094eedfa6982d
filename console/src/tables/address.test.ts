import { expect, it } from "vitest";
import { readColumns, readViews } from "./address.ts";

it("keeps saved views and drops what is none", () => {
  expect(readViews('{"hot":"?text=util>80","a":5,"b":null,"c":{}}')).toEqual({ hot: "?text=util>80" });
  for (const text of [undefined, "", "null", "5", "[1]", '"x"', "{"]) expect(readViews(text)).toEqual({});
  expect(readColumns('{"power":true,"tier":"no"}')).toEqual({ power: true });
});
