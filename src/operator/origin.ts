import type { Origin } from "../domain/audit.ts";
import { operatorUserHeader } from "./user-header.ts";

/** The command line says which of the machine's users runs it; anyone else has the token, or has signed in with it. */
export function operatorOrigin({ headers, address }: { headers: Headers; address: string }): Origin & { via: string } {
  return { actor: "operator", via: viaOf(headers), address };
}

function viaOf(headers: Headers): string {
  if (!headers.has("authorization")) return browserName;
  const user = headers.get(operatorUserHeader);
  return user !== null && /^[\w.@-]{1,64}$/.test(user) ? `command of ${user}` : "operator token";
}

export const browserName = "operator in a browser";
