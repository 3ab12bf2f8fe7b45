import { signal } from "@preact/signals";
import { call } from "../api/client.ts";
import type { About } from "../api/types.ts";
import { type Loaded, useLoaded } from "../stream/load.ts";

/** What this server offers: sign-up, payments, plans. Null until it is known. */
export const server = signal<About | null>(null);

/** Whether plans are sold here: pages do not mention what is not sold. Until it is known, nothing is. */
export const sells = (): boolean => (server.value?.payments ?? "off") !== "off";

let asking: Promise<About> | null = null;

/** Asks once, however many pages want to know, and again only after a failure. */
export function meetServer(): Promise<About> {
  asking ??= call<About>("/v1/about", { credential: null })
    .then((about) => {
      server.value = about;
      return about;
    })
    .catch((error: unknown) => {
      asking = null;
      throw error;
    });
  return asking;
}

/** Reads the current state: what is paused will resume one day. */
export function askServer(): Promise<About> {
  asking = null;
  return meetServer();
}

/** For pages that need it. */
export function useServer(): Loaded<About> {
  return useLoaded("about", meetServer);
}
