// Repairs a language that numbers cannot be written in: a browser without LANG says `en-US@posix`, and a library
// that formats by it fails on loading.

const PLAIN = "en-US";

function isKnown(language: string): boolean {
  try {
    new Intl.NumberFormat(language);
    return true;
  } catch {
    return false;
  }
}

/** The language itself where it is one, else what stands before its modifier, else English. */
export function usable(language: string | undefined): string {
  const bare = (language ?? "").split(/[@.]/)[0]!.replace("_", "-");
  return [language ?? "", bare].find((one) => one !== "" && isKnown(one)) ?? PLAIN;
}

/** Make the browser name a language that can be used. */
export function mendLanguage(navigator: Navigator): void {
  const language = usable(navigator.language);
  if (language !== navigator.language)
    Object.defineProperty(navigator, "language", { value: language, configurable: true });
}
