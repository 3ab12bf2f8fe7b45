import { ApiError, call } from "../api/client.ts";
import { beginSession, endSession, expiresAt, isLast, token } from "../api/session.ts";
import type { Authenticated } from "../api/types.ts";

/** A token lives for two hours; while in use it is renewed when half of that is over. */
const renewBeforeMs = 60 * 60_000;
/** A tab counts as in use for this long after the last key, pointer or visit. */
const inUseMs = 15 * 60_000;
const lookEveryMs = 30_000;

let lastUse = Date.now();
export const lastUseAt = (): number => lastUse;

/** Renews the session while the tab is in use, and ends it with a message when its time is up. */
export function keepSession(): void {
  let lastTry = 0;

  function look(): void {
    if (token.peek() === null) return;
    const now = Date.now();
    const leftMs = expiresAt.peek() - now;
    const isDue = leftMs < renewBeforeMs && now - lastUse < inUseMs && now - lastTry >= lookEveryMs;
    if (leftMs <= 0) endSession("ended");
    else if (isDue && !isLast.peek()) {
      lastTry = now;
      void renew();
    }
  }

  // A user who returns in a token's last seconds is still in time, even if the timer would be late.
  const use = () => {
    lastUse = Date.now();
    look();
  };
  for (const kind of ["pointerdown", "keydown", "focus"]) addEventListener(kind, use, { passive: true });
  setInterval(look, lookEveryMs);
  // The timer stands still while a laptop is closed.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
  });
}

async function renew(): Promise<void> {
  const before = token.peek();
  try {
    const { token: renewed } = await call<Authenticated>("/v1/tenants/auth/refresh", { method: "POST" });
    // After a sign-out or a password change in the meantime, there is another session or none.
    if (token.peek() === before) beginSession(renewed);
  } catch (error) {
    // Anything else is retried in half a minute.
    if (error instanceof ApiError && error.code === "session_too_old") isLast.value = true;
  }
}
