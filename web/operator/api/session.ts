import { signal } from "@preact/signals";
import { ApiError, type Call, call } from "../../api/client.ts";

/**
 * Whether the operator is signed in: `unknown` until the server has said so, because scripts cannot read its cookie.
 * Otherwise why not: nobody was, they signed out, or the session has ended.
 */
export type Standing = "unknown" | "in" | NotIn;
export type NotIn = "none" | "left" | "ended";

export const standing = signal<Standing>("unknown");

/** In the tab's own storage: that somebody was signed in, and nothing else. */
const wasInKey = "postrider.operator";

/** Any response from it tells whether the cookie is accepted. */
const probePath = "/operator/nodes";

/** One request as the operator. A refusal signs the operator out. @throws ApiError */
export async function ask<T>(path: string, options: Omit<Call, "credential"> = {}): Promise<T> {
  try {
    return await call<T>(path, { ...options, credential: null });
  } catch (error) {
    if (isRefusal(error) && standing.peek() === "in") leave("ended");
    throw error;
  }
}

const isRefusal = (error: unknown) => error instanceof ApiError && error.status === 401;

/** Resumes the session that the browser has, if any. */
export async function resume(): Promise<void> {
  try {
    await ask(probePath);
  } catch (error) {
    if (isRefusal(error)) return leave(sessionStorage.getItem(wasInKey) === null ? "none" : "ended");
  }
  // Anything else that went wrong is for the screen to show.
  enter();
}

/** @throws ApiError */
export async function signIn(token: string): Promise<void> {
  await call("/operator/session", { method: "POST", body: { token }, credential: null });
  try {
    await ask(probePath);
  } catch (error) {
    if (isRefusal(error)) {
      throw new ApiError(
        "The token is right, but the browser did not keep the session. Open this page at the server's public address.",
        0,
        "no_cookie",
        null,
      );
    }
  }
  enter();
}

/** @throws ApiError: the cookie is still there */
export async function signOut(): Promise<void> {
  await call("/operator/session", { method: "DELETE", credential: null });
  leave("left");
}

function enter(): void {
  sessionStorage.setItem(wasInKey, "in");
  standing.value = "in";
}

function leave(why: NotIn): void {
  sessionStorage.removeItem(wasInKey);
  standing.value = why;
}
