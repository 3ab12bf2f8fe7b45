import { signal } from "@preact/signals";

/** Increases with each connection of the stream except the first: what could not be read may be tried again. */
export const reopenings = signal(0);
