import { computed, signal } from "@preact/signals";

/**
 * The session of this tab. Its token is kept in the tab's own storage, so that a reload goes on and closing the tab ends
 * it; it is in no URL and in no storage that outlives the tab or that other tabs share.
 */
interface Session {
  readonly token: string;
  /** When the server stops taking the token, in ms since the Unix epoch. */
  readonly expiresAt: number;
}

/** Why there is no session: nobody signed in, the user signed out, the account is gone, or it ran out. */
export type NoSession = "none" | "left" | "deleted" | "ended";

const storageKey = "postrider.session";

const session = signal<Session | null>(restore());
export const noSession = signal<NoSession>("none");
export const token = computed(() => session.value?.token ?? null);
export const isSignedIn = computed(() => session.value !== null);
/** It was renewed for a day and cannot be once more: its end is known. */
export const isLast = signal(false);
export const expiresAt = computed(() => session.value?.expiresAt ?? 0);

/** @param jwt what a login, a renewal or a change of the password answered */
export function beginSession(jwt: string): void {
  session.value = { token: jwt, expiresAt: expiryOf(jwt) };
  isLast.value = false;
  noSession.value = "none";
  sessionStorage.setItem(storageKey, jwt);
}

export function endSession(why: Exclude<NoSession, "none">): void {
  if (session.value === null) return;
  sessionStorage.removeItem(storageKey);
  noSession.value = why;
  session.value = null;
}

function restore(): Session | null {
  const jwt = sessionStorage.getItem(storageKey);
  if (jwt === null) return null;
  const expires = expiryOf(jwt);
  return expires > Date.now() ? { token: jwt, expiresAt: expires } : null;
}

/** The `exp` of a JWT (RFC 7519, section 4.1.4); the signature is the server's business. */
function expiryOf(jwt: string): number {
  const claims: unknown = JSON.parse(atob((jwt.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/")));
  return typeof claims === "object" && claims !== null && "exp" in claims ? Number(claims.exp) * 1000 : 0;
}
