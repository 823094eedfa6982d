// Words of a command line. Pure.

export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** A thing by its name, before options; by its id where the name would be taken for one. */
export const called = ({ id, name }: { id: string; name: string }): string =>
  name.startsWith("-") ? id : quoted(name);

/** A word that stands by itself on a command line: one that begins with a dash is not taken for an option. */
export function operand(word: string): string {
  return word.startsWith("-") ? `-- ${quoted(word)}` : quoted(word);
}
