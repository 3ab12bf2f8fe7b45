import { effect, signal } from "@preact/signals";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { endSession, isSignedIn, token } from "../session/session.ts";

/**
 * The account's stream, read with `fetch`: an `EventSource` cannot send the token in a header, and a token in a URL ends up
 * in logs. One connection serves the whole page.
 */
export type StreamKind =
  | "event.accepted"
  | "delivery.attempted"
  | "delivery.finished"
  | "replay.progressed"
  | "account.changed";

export interface StreamMessage {
  readonly kind: StreamKind;
  /** Parsed when it is read: of thousands a second most pages need a few. */
  data(): Record<string, unknown>;
}

/** `catching-up`: the connection is there, and what was missed is being read again. */
export type StreamState = "connecting" | "live" | "offline" | "catching-up";

export const streamState = signal<StreamState>("connecting");
/** Rises when messages are missing: whoever shows a list reads it again. */
export const resyncs = signal(0);

type Listener = (messages: readonly StreamMessage[]) => void;
const listeners = new Set<Listener>();

/** @param listen gets the messages of one read at once @returns ends it */
export function onStream(listen: Listener): () => void {
  listeners.add(listen);
  return () => void listeners.delete(listen);
}

/** The server says something every 15 s; a connection that is quiet for longer is dead, whatever the system thinks of it. */
const quietMs = 40_000;
const firstPauseMs = 500;
const longestPauseMs = 15_000;
const noticeMs = 3000;
/** As long as pages may work on one read before the browser gets a turn. */
const turnMs = 12;

/** Follows the stream for as long as somebody is signed in. */
export function followStream(): void {
  effect(() => {
    if (!isSignedIn.value) return;
    const stop = new AbortController();
    streamState.value = "connecting";
    void follow(stop.signal);
    return () => stop.abort();
  });
}

async function follow(stop: AbortSignal): Promise<void> {
  /** The last message that arrived; survives any number of connections. */
  let lastId = "";
  let pauseMs = firstPauseMs;
  while (!stop.aborted) {
    try {
      await readOnce(
        stop,
        lastId,
        (id) => {
          lastId = id;
        },
        () => {
          pauseMs = firstPauseMs;
        },
      );
    } catch {
      // Whatever it was, the answer is to connect again.
    }
    if (stop.aborted) return;
    streamState.value = "offline";
    await wakeOrPause(stop, pauseMs * (0.75 + Math.random() / 2));
    pauseMs = Math.min(pauseMs * 2, longestPauseMs);
  }
}

async function readOnce(
  stop: AbortSignal,
  lastId: string,
  onId: (id: string) => void,
  onOpen: () => void,
): Promise<void> {
  const connection = new AbortController();
  const signal = AbortSignal.any([stop, connection.signal]);
  let quiet: ReturnType<typeof setTimeout> | undefined;
  const hear = () => {
    clearTimeout(quiet);
    quiet = setTimeout(() => connection.abort(), quietMs);
  };
  // A laptop that wakes up holds a connection that nobody answers any more.
  const onOnline = () => connection.abort();
  addEventListener("online", onOnline, { once: true });
  try {
    hear();
    const response = await fetch("/v1/stream", {
      headers: { Authorization: `Bearer ${token.value}`, ...(lastId !== "" && { "Last-Event-ID": lastId }) },
      signal,
    });
    if (response.status === 401) endSession("ended");
    if (!response.ok || !response.body) throw new Error(`The stream answered ${response.status}`);
    onOpen();
    await readMessages(response.body, { hear, onId });
  } finally {
    clearTimeout(quiet);
    removeEventListener("online", onOnline);
    connection.abort();
  }
}

async function readMessages(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { hear, onId }: { hear(): void; onId(id: string): void },
): Promise<void> {
  let batch: StreamMessage[] = [];
  let isResync = false;
  const parser = createParser({
    onEvent({ id, event, data }: EventSourceMessage) {
      if (id !== undefined) onId(id);
      if (event === "resync") isResync = true;
      else batch.push({ kind: event as StreamKind, data: () => JSON.parse(data) as Record<string, unknown> });
    },
  });
  for await (const text of body.pipeThrough(new TextDecoderStream())) {
    hear();
    parser.feed(text);
    if (isResync) catchUp();
    else if (streamState.value !== "catching-up") streamState.value = "live";
    isResync = false;
    const startedAt = performance.now();
    if (batch.length > 0) for (const listen of [...listeners]) listen(batch);
    batch = [];
    if (performance.now() - startedAt > turnMs) await new Promise((resolve) => setTimeout(resolve));
  }
}

/** Messages are missing: every list is read again, and the page says so for as long as one needs to read it. */
function catchUp(): void {
  streamState.value = "catching-up";
  resyncs.value += 1;
  setTimeout(() => {
    if (streamState.value === "catching-up") streamState.value = "live";
  }, noticeMs);
}

/** Waits, but no longer than until the network or the user is back. */
function wakeOrPause(stop: AbortSignal, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const wake = () => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      document.removeEventListener("visibilitychange", wakeIfVisible);
      stop.removeEventListener("abort", wake);
      resolve();
    };
    const wakeIfVisible = () => {
      if (document.visibilityState === "visible") wake();
    };
    const timer = setTimeout(wake, ms);
    addEventListener("online", wake);
    document.addEventListener("visibilitychange", wakeIfVisible);
    stop.addEventListener("abort", wake);
  });
}
