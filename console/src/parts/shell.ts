// Words of a command line. Pure.

export function quoted(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, `'\\''`)}'`;
}

/** A word that stands by itself on a command line: one that begins with a dash is not taken for an option. */
export function operand(word: string): string {
  return word.startsWith("-") ? `-- ${quoted(word)}` : quoted(word);
}
