import { signal } from "@preact/signals";
import { call } from "../api/client.ts";
import type { About } from "../api/types.ts";

/** What this server offers: sign-up, payments, plans. Null until it is known. */
export const server = signal<About | null>(null);

export async function meetServer(): Promise<void> {
  server.value = await call<About>("/v1/about", { credential: null });
}
