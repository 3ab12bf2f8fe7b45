import { ApiError, call } from "../api/client.ts";
import type { Authenticated } from "../api/types.ts";
import { beginSession, endSession, expiresAt, isLast, isSignedIn } from "./session.ts";

/** A token lives for two hours; one that is used is renewed when half of that is over. */
const renewBeforeMs = 60 * 60_000;
/** A tab counts as in use for this long after the last key, pointer or visit. */
const inUseMs = 15 * 60_000;
const lookEveryMs = 30_000;

/** Renews the session while the tab is in use, and ends it with a message when its time is over. */
export function keepSession(): void {
  let lastUse = Date.now();
  const use = () => {
    lastUse = Date.now();
  };
  for (const kind of ["pointerdown", "keydown", "focus"]) addEventListener(kind, use, { passive: true });

  const look = () => {
    if (!isSignedIn.value) return;
    const now = Date.now();
    if (now >= expiresAt.value) endSession("ended");
    else if (!isLast.value && expiresAt.value - now < renewBeforeMs && now - lastUse < inUseMs) void renew();
  };
  setInterval(look, lookEveryMs);
  // A laptop that was closed has missed the timer.
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") look();
  });
}

async function renew(): Promise<void> {
  try {
    beginSession((await call<Authenticated>("/v1/tenants/auth/refresh", { method: "POST" })).token);
  } catch (error) {
    // Anything else is tried again in half a minute.
    if (error instanceof ApiError && error.code === "session_too_old") isLast.value = true;
  }
}
