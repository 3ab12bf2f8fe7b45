import { createHmac } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import { isSameSecret } from "../lib/same-secret.ts";

/**
 * The operator's session in a browser (rules, section 17): a signed cookie that carries its own expiry, so every server that
 * shares the secret accepts it. The signature covers the operator token too, so a new token ends all sessions. No script can
 * read the cookie, no other site's page can send it, and it is sent only to the operator's paths.
 */
export interface BrowserSessions {
  /** `Set-Cookie` for a new session, and when the session ends, in ms since the Unix epoch. */
  begin(): { cookie: string; expiresAt: number };
  /** `Set-Cookie` that makes the browser delete the cookie. */
  end(): string;
  isOpen(headers: Headers): boolean;
}

export interface BrowserSessionDeps {
  secret: Uint8Array;
  /** Read on each use, because it can be rotated. */
  operatorToken(): string;
  /** Base address of the server as seen from outside. */
  publicUrl(): string;
  clock: Pick<Clock, "now">;
}

/** Rules, section 17. */
const browserSessionSeconds = 12 * 60 * 60;

const cookieName = "postrider-operator";
const cookiePath = "/operator";

export function createBrowserSessions({
  secret,
  operatorToken,
  publicUrl,
  clock,
}: BrowserSessionDeps): BrowserSessions {
  const isSecure = () => publicUrl().startsWith("https:");
  // A browser accepts a name with this prefix only over TLS (RFC 6265bis, section 4.1.3.1).
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

/** The value of a cookie in a `Cookie` field (RFC 6265, section 4.2.1). */
function valueIn(field: string, name: string): string | null {
  for (const pair of field.split(";")) {
    const at = pair.indexOf("=");
    if (pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim();
  }
  return null;
}
