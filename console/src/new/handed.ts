// A form that goes on in another page, with its files: in memory, since neither an address nor a history should keep
// variables and files.
import type { Draft } from "../clusters/request.ts";
import type { Parcel } from "../folders/reading.ts";
import type { JobDraft } from "../jobs/jobs.ts";

interface Form {
  machine?: Draft;
  job?: JobDraft;
  parcel?: Parcel | null;
}

let last: { number: number; form: Form } = { number: 0, form: {} };

/** Returns the state of the navigation that leads to it. */
export function hand(form: Form): { handed: number } {
  last = { number: last.number + 1, form };
  return { handed: last.number };
}

/** number: of the page's own state; of another form, or after the page was loaded again, nothing is left. */
export const handed = (number: number | undefined): Form => (number === last.number ? last.form : {});
