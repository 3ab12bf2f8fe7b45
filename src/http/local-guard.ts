import { DomainError } from "../domain/errors.ts";
import { isLoopbackHost } from "../lib/cidr.ts";

/**
 * In local mode the program is open to anyone who can reach it. A tunnel, a proxy or a web page with a rebinding name would
 * hand the laptop to strangers, so a request must name this machine and must not have been forwarded (rules, section 1).
 */
export function refuseForeign(headers: Headers): DomainError | null {
  const host = headers.get("host") ?? "";
  let isPassedOn = false;
  for (const name of headers.keys()) isPassedOn ||= name === "forwarded" || name.startsWith("x-forwarded-");
  if (!isPassedOn && isLoopbackHost(hostName(host))) return null;
  return new DomainError({
    kind: "forbidden",
    code: "local_mode",
    message:
      "This server runs in local mode and serves only its own machine; to reach it from elsewhere, set POSTRIDER_PUBLIC_URL to its public address.",
  });
}

/** `[::1]:8080` → `[::1]`, `localhost:8080` → `localhost`. */
const hostName = (host: string) => host.replace(/:\d*$/, "");
