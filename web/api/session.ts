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
const ranOut = restored !== null && restored.expiresAt <= Date.now() ? restored : null;
if (ranOut !== null) sessionStorage.removeItem(storageKey);
export const session = signal<Session | null>(ranOut === null ? restored : null);
export const noSession = signal<NoSession>(ranOut === null ? "none" : "ended");
/** The account whose session has ended in this tab, which is about to sign in again; null: none has. */
export const endedAccount = signal<string | null>(ranOut && ownAccountOf(ranOut));
export const token = computed(() => session.value?.token ?? null);
/** The operator is viewing the account: nothing can be changed, and other tabs have nothing to do with it. */
export const isView = computed(() => token.value !== null && isViewToken(token.value));
/** The id of the account that is signed in; "": none is. What a tab keeps of one account is not for the next. */
export const accountId = computed(() => (token.value === null ? "" : accountOf(token.value)));
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
  endedAccount.value = null;
  sessionStorage.setItem(storageKey, `${begun.token} ${begun.expiresAt}`);
}

/** What the user did (left, deleted) says more than a token refused in the meantime. */
export function endSession(why: Exclude<NoSession, "none">): void {
  if (session.value === null && why === "ended") return;
  sessionStorage.removeItem(storageKey);
  noSession.value = why;
  endedAccount.value = why === "ended" && session.value !== null ? ownAccountOf(session.value) : null;
  session.value = null;
}

function restore(): Session | null {
  const [jwt, expires] = sessionStorage.getItem(storageKey)?.split(" ") ?? [];
  if (jwt === undefined) return null;
  return { token: jwt, expiresAt: expires === undefined ? Date.now() + lifetimeOf(jwt) : Number(expires) };
}

/** In ms, from `iat` to `exp` (RFC 7519, section 4.1); 0 when it is not a JWT. The signature is the server's business. */
function lifetimeOf(jwt: string): number {
  const { exp, iat } = claimsOf(jwt);
  return (Number(exp) - Number(iat)) * 1000 || 0;
}

/** The id of the account that a token belongs to. */
export function accountOf(jwt: string): string {
  return String(claimsOf(jwt).sub);
}

/** Null: the operator was viewing it, and cannot sign in to it. */
function ownAccountOf({ token: jwt }: Session): string | null {
  return isViewToken(jwt) ? null : accountOf(jwt);
}

/** One with which the operator views an account. */
export function isViewToken(jwt: string): boolean {
  return claimsOf(jwt).view === true;
}

function claimsOf(jwt: string): { exp?: unknown; iat?: unknown; sub?: unknown; view?: unknown } {
  try {
    return JSON.parse(atob((jwt.split(".")[1] ?? "").replaceAll("-", "+").replaceAll("_", "/"))) ?? {};
  } catch {
    return {};
  }
}
