// What a refused request says about its fields, for the fields of its form.
import { ApiProblem } from "../api/client.ts";

/** By the names of the API, without the name before the sentence; empty where it is about no field. */
export function faultsOf(error: unknown): Partial<Record<string, string>> {
  if (!(error instanceof ApiProblem)) return {};
  const { subject, detail, reasons } = error.problem;
  const told = reasons.filter((one) => one.about).map(({ about, text }) => [about, text] as const);
  const [, field = subject, text = detail] = /^([a-z_.]+): (.+)$/s.exec(detail) ?? [];
  const of = told.length > 0 || !field ? told : [[field, text] as const];
  return Object.fromEntries(of.map(([name, said]) => [name, said.charAt(0).toUpperCase() + said.slice(1)]));
}

/** True if the form shows all of them at its fields, so that no note has to. */
export function isAtFields(error: unknown, fields: readonly string[]): boolean {
  const told = Object.keys(faultsOf(error));
  return told.length > 0 && told.every((one) => fields.includes(one));
}
