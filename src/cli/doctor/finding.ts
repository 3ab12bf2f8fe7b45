/** The result of one check. */
export interface Finding {
  readonly check: string;
  /** `bad`: something is being refused, lost or not delivered, or is about to be. */
  readonly state: "ok" | "warning" | "bad";
  readonly message: string;
  /** Null: nothing needs to be done. */
  readonly remedy: string | null;
}

export type Found = Omit<Finding, "check">;

export const ok = (message: string): Found => ({ state: "ok", message, remedy: null });
export const warning = (message: string, remedy: string): Found => ({ state: "warning", message, remedy });
export const bad = (message: string, remedy: string): Found => ({ state: "bad", message, remedy });

const remedyMark = " Try: ";

/** Made from one of the program's messages, which say what to do after "Try:". */
export function badInWords(text: string): Found {
  const at = text.indexOf(remedyMark);
  return at < 0
    ? bad(text, "look into the server's log")
    : bad(text.slice(0, at), text.slice(at + remedyMark.length).replace(/\.$/, ""));
}
