/** What one look has come to. */
export interface Finding {
  readonly check: string;
  /** `bad`: something is refused, lost or not delivered, or is about to be. */
  readonly state: "ok" | "warning" | "bad";
  readonly message: string;
  /** Null: nothing needs doing. */
  readonly remedy: string | null;
}

export type Found = Omit<Finding, "check">;

export const ok = (message: string): Found => ({ state: "ok", message, remedy: null });
export const warning = (message: string, remedy: string): Found => ({ state: "warning", message, remedy });
export const bad = (message: string, remedy: string): Found => ({ state: "bad", message, remedy });

const remedyMark = " Try: ";

/** From a sentence of the program that says what to do behind "Try:". */
export function badInWords(text: string): Found {
  const at = text.indexOf(remedyMark);
  return at < 0
    ? bad(text, "look into the server's log")
    : bad(text.slice(0, at), text.slice(at + remedyMark.length).replace(/\.$/, ""));
}
