import { createHmac } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { isSameSecret } from "../lib/same-secret.ts";

/**
 * The operator's session in a browser (rules, section 17): a cookie that says until when it holds, signed, so that every
 * server that shares the secret takes it. The operator token is part of what is signed: with another one all sessions end.
 * No script reads the cookie, no other site's page sends it, and it goes to the operator's paths alone.
 */
export interface BrowserSessions {
  /** `Set-Cookie` of a new session, and when that ends, in ms since the Unix epoch. */
  begin(): { cookie: string; expiresAt: number };
  /** `Set-Cookie` that makes the browser forget it. */
  end(): string;
  isOpen(headers: Headers): boolean;
}

export interface BrowserSessionDeps {
  secret: Uint8Array;
  /** Read each time, because it can be rotated. */
  operatorToken(): string;
  /** Base address of the server, as it is known outside. */
  publicUrl(): string;
  clock: Pick<Clock, "now">;
}

export const browserSessionSeconds = 12 * 60 * 60;

const cookieName = "postrider-operator";
const cookiePath = "/operator";

export function createBrowserSessions({
  secret,
  operatorToken,
  publicUrl,
  clock,
}: BrowserSessionDeps): BrowserSessions {
  const isSecure = () => publicUrl().startsWith("https:");
  // A browser takes a name with this prefix over TLS alone (RFC 6265bis, section 4.1.3.1).
  const name = () => (isSecure() ? `__Secure-${cookieName}` : cookieName);

  const sign = (expires: string) =>
    createHmac("sha256", secret).update(`${expires} ${operatorToken()}`).digest("base64url");

  const cookie = (value: string, seconds: number) =>
    [
      `${name()}=${value}`,
      `Path=${cookiePath}`,
      `Max-Age=${seconds}`,
      "HttpOnly",
      "SameSite=Strict",
      ...(isSecure() ? ["Secure"] : []),
    ].join("; ");

  return {
    begin() {
      const expires = Math.floor(clock.now() / 1000) + browserSessionSeconds;
      return {
        cookie: cookie(`${expires}.${sign(String(expires))}`, browserSessionSeconds),
        expiresAt: expires * 1000,
      };
    },
    end: () => cookie("", 0),
    isOpen(headers) {
      const value = valueIn(headers.get("cookie") ?? "", name());
      const [, expires, signature] = /^(\d{1,12})\.([\w-]+)$/.exec(value ?? "") ?? [];
      if (expires === undefined || signature === undefined) return false;
      return isSameSecret(signature, sign(expires)) && Number(expires) * 1000 > clock.now();
    },
  };
}

/** Of the `Cookie` field (RFC 6265, section 4.2.1). */
function valueIn(field: string, name: string): string | null {
  for (const pair of field.split(";")) {
    const at = pair.indexOf("=");
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}
