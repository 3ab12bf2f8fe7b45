import { signal } from "@preact/signals";

/** Rises with each connection of the stream but the first: what could not be read may be tried again. */
export const reopenings = signal(0);
