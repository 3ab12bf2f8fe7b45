import { computed, signal } from "@preact/signals";

/**
 * The session of this tab. Its token is kept in the tab's own storage, so that it survives a reload and closing the tab
 * ends it; it is in no URL, and in no storage that outlives the tab or is shared with other tabs. Other tabs ask for it
 * (`session/tabs.ts`).
 */
export interface Session {
  readonly token: string;
  /** When the server stops accepting the token, in ms since the Unix epoch. */
  readonly expiresAt: number;
}

/** Why there is no session: nobody has signed in, the user signed out, the account is gone, or the session ran out. */
export type NoSession = "none" | "left" | "deleted" | "ended";

const storageKey = "postrider.session";

const restored = restore();
export const session = signal<Session | null>(restored === "ended" ? null : restored);
export const noSession = signal<NoSession>(restored === "ended" ? "ended" : "none");
export const token = computed(() => session.value?.token ?? null);
/** The operator is viewing the account: nothing can be changed, and other tabs have nothing to do with it. */
export const isView = computed(() => token.value !== null && claimsOf(token.value).view === true);
export const isSignedIn = computed(() => session.value !== null);
/** The session was renewed for a day and cannot be renewed again: its end is known. */
export const isLast = signal(isView.peek());
export const expiresAt = computed(() => session.value?.expiresAt ?? 0);

/** @param jwt the token from a login, a renewal or a password change */
export function beginSession(jwt: string): void {
  // By this machine's clock, from the moment the token arrived: a clock that is hours off must not end a session that the
  // server still accepts.
  adoptSession({ token: jwt, expiresAt: Date.now() + lifetimeOf(jwt) });
}

/** Continues a session that began earlier, maybe in another tab. */
export function adoptSession(begun: Session): void {
  session.value = begun;
  isLast.value = isView.peek();
  noSession.value = "none";
  sessionStorage.setItem(storageKey, `${begun.token} ${begun.expiresAt}`);
}

/** What the user did (left, deleted) says more than a token refused in the meantime. */
export function endSession(why: Exclude<NoSession, "none">): void {
  if (session.value === null && why === "ended") return;
  sessionStorage.removeItem(storageKey);
  noSession.value = why;
  session.value = null;
}

function restore(): Session | "ended" | null {
  const [jwt, expires] = sessionStorage.getItem(storageKey)?.split(" ") ?? [];
  if (jwt === undefined) return null;
  const expiresAt = expires === undefined ? Date.now() + lifetimeOf(jwt) : Number(expires);
  if (expiresAt > Date.now()) return { token: jwt, expiresAt };
  sessionStorage.removeItem(storageKey);
  return "ended";
}

/** In ms, from `iat` to `exp` (RFC 7519, section 4.1); 0 when it is not a JWT. The signature is the server's business. */
function lifetimeOf(jwt: string): number {
  const { exp, iat } = claimsOf(jwt);
  return (Number(exp) - Number(iat)) * 1000 || 0;
}

/** The id of the account that a token belongs to. */
export const accountOf = (jwt: string): string => String(claimsOf(jwt).sub);

function claimsOf(jwt: string): { exp?: unknown; iat?: unknown; sub?: unknown; view?: unknown } {
  try {
    return JSON.parse(atob((jwt.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"))) ?? {};
  } catch {
    return {};
  }
}
