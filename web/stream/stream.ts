import { effect, signal, untracked } from "@preact/signals";
import { createParser, type EventSourceMessage } from "eventsource-parser";
import { toError } from "../api/client.ts";
import { isSignedIn, token } from "../api/session.ts";
import { isLost, lookEveryMs } from "./liveness.ts";
import { type Ending, type Plan, planReconnect } from "./reconnect.ts";
import { reopenings } from "./reopenings.ts";

/**
 * The account's stream, read with `fetch`: an `EventSource` cannot send the token in a header, and a token in a URL ends
 * up in logs. One connection serves the whole page, and only while it is seen: over HTTP/1.1 a browser opens six
 * connections to a host, for all tabs together.
 */
export type StreamKind =
  | "event.accepted"
  | "delivery.attempted"
  | "delivery.finished"
  | "replay.progressed"
  | "webhook.changed"
  | "account.changed"
  /** Messages are missing. */
  | "resync"
  /** Of the page itself: see `untold-ends.ts`. */
  | "deliveries.ended";

export interface StreamMessage {
  readonly kind: StreamKind;
  /** Parsed only when read: of thousands a second, most pages need a few. */
  data(): Record<string, unknown>;
}

/** `catching-up`: the connection is there, and what was missed is being read again. */
export type StreamState = "connecting" | "live" | "offline" | "catching-up";

export const streamState = signal<StreamState>("connecting");
/** Why there is no stream, in the words of a server that does respond. */
export const streamTrouble = signal<string | null>(null);
/** Increases when messages are missing: pages that show a list read it again. */
export const resyncs = signal(0);

type Listener = (messages: readonly StreamMessage[]) => void;
const listeners = new Set<Listener>();

/** @param listen gets the messages of one read together @returns a function that unsubscribes */
export function onStream(listen: Listener): () => void {
  listeners.add(listen);
  return () => void listeners.delete(listen);
}

const noticeMs = 3000;
/** How long pages may work on one read before the browser gets a turn. */
const turnMs = 12;
/** A tab that is hidden for this long ends its stream: a glance at another tab costs nothing. */
const glanceMs = 5000;

const isHidden = () => document.visibilityState === "hidden";

/** How long reads wait for the first connection: from then on, the stream tells what they do not. */
const beginWithinMs = 250;
let begun: Promise<void> | undefined;

/** Resolves when the stream has begun, or is too late to wait for: what is read then is read again when it begins. */
export const untilBegun = async () => begun;

/** Follows the stream for as long as somebody is signed in. */
export function followStream(): void {
  effect(() => {
    if (!isSignedIn.value) return;
    const stop = new AbortController();
    streamState.value = "connecting";
    // A renewed token is no reason to start over: the connection lasts until the old one expires.
    untracked(() => void follow(stop.signal));
    return () => stop.abort();
  });
}

/** The position in the stream; survives any number of connections. */
interface Place {
  lastId: string;
  tries: number;
  /** Pages have begun to read without it. */
  mayHaveMissed: boolean;
  /** Lets the reads that wait for it begin. */
  begin(): void;
}

async function follow(stop: AbortSignal): Promise<void> {
  const place: Place = { lastId: "", tries: 0, mayHaveMissed: false, begin() {} };
  begun = new Promise((resolve) => {
    place.begin = resolve;
  });
  const giveUpWaiting = () => {
    place.mayHaveMissed = true;
    place.begin();
  };
  if (isHidden()) giveUpWaiting();
  else setTimeout(giveUpWaiting, beginWithinMs);
  let failures = 0;
  while (!stop.aborted) {
    while (isHidden()) await nextVisibility();
    const ending = await connect(stop, place);
    if (stop.aborted) return;
    const plan = planReconnect(ending, failures, Math.random());
    failures = plan.failures;
    streamTrouble.value = ending.kind === "refused" ? ending.message : null;
    streamState.value = plan.isQuiet ? "connecting" : "offline";
    await pause(stop, plan);
  }
}

async function connect(stop: AbortSignal, place: Place): Promise<Ending> {
  const connection = new AbortController();
  const signal = AbortSignal.any([stop, connection.signal]);
  const watch = watchOver(() => connection.abort());
  const used = token.peek();
  let openedAt: number | null = null;
  place.tries += 1;
  try {
    const response = await fetch("/v1/stream", {
      headers: { Authorization: `Bearer ${used}`, ...(place.lastId !== "" && { "Last-Event-ID": place.lastId }) },
      cache: "no-store",
      redirect: "error",
      signal,
    });
    if (!response.ok) {
      const { message, retryAfterSeconds } = await toError(response, used);
      return { kind: "refused", message, retryAfterSeconds };
    }
    // Networks that require a login first answer everything with their own page.
    const isStream = response.headers.get("content-type")?.startsWith("text/event-stream");
    if (!isStream || !response.body) return { kind: "unreachable" };
    openedAt = Date.now();
    watch.hear();
    onOpen(place);
    await readMessages(response.body, place, watch.hear);
  } catch {
    // Whatever it was, the remedy is to connect again.
  } finally {
    watch.end();
    connection.abort();
  }
  if (isHidden()) return { kind: "unseen" };
  return openedAt === null ? { kind: "unreachable" } : { kind: "cut", stoodMs: Date.now() - openedAt };
}

const nextVisibility = () =>
  new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }));

function onOpen({ tries, lastId, mayHaveMissed, begin }: Place): void {
  streamTrouble.value = null;
  begin();
  if (tries > 1) reopenings.value += 1;
  // The lists were read while nothing was listening.
  if (mayHaveMissed && lastId === "") resyncs.value += 1;
}

/** Calls `giveUp` when the connection is dead, although nothing reports it, or nobody sees what it brings. */
function watchOver(giveUp: () => void): { hear(): void; end(): void } {
  let isOpen = false;
  let heardAt = Date.now();
  let lookedAt = heardAt;
  let wasHidden = isHidden();
  let leaving: ReturnType<typeof setTimeout> | undefined;
  const look = (isComing: boolean) => {
    const now = Date.now();
    if (isLost({ isOpen, now, heardAt, lookedAt, isComing, isWatched: !wasHidden && !isHidden() })) giveUp();
    lookedAt = now;
    wasHidden = isHidden();
  };
  const onSight = () => {
    clearTimeout(leaving);
    if (isHidden()) leaving = setTimeout(giveUp, glanceMs);
    look(!isHidden());
  };
  const timer = setInterval(() => look(false), lookEveryMs);
  // Another network, or none: the open connection is gone, or, if the server is on this machine, can be re-established
  // immediately.
  addEventListener("online", giveUp);
  addEventListener("offline", giveUp);
  addEventListener("pageshow", onSight);
  document.addEventListener("resume", onSight);
  document.addEventListener("visibilitychange", onSight);
  return {
    hear() {
      isOpen = true;
      heardAt = Date.now();
    },
    end() {
      clearInterval(timer);
      clearTimeout(leaving);
      removeEventListener("online", giveUp);
      removeEventListener("offline", giveUp);
      removeEventListener("pageshow", onSight);
      document.removeEventListener("resume", onSight);
      document.removeEventListener("visibilitychange", onSight);
    },
  };
}

async function readMessages(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  place: Place,
  hear: () => void,
): Promise<void> {
  let batch: StreamMessage[] = [];
  let isResync = false;
  const parser = createParser({
    onId(id) {
      place.lastId = id;
    },
    onEvent({ event, data }: EventSourceMessage) {
      isResync ||= event === "resync";
      batch.push({ kind: event as StreamKind, data: () => JSON.parse(data) as Record<string, unknown> });
    },
  });
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) {
    hear();
    parser.feed(read.value);
    if (isResync) catchUp();
    else if (streamState.value !== "catching-up") streamState.value = "live";
    isResync = false;
    const startedAt = performance.now();
    if (batch.length > 0) handOver(batch);
    batch = [];
    const isLong = performance.now() - startedAt > turnMs;
    // A hidden tab has nothing to draw, and its timers may take a minute.
    if (isLong && !isHidden()) await new Promise((resolve) => setTimeout(resolve));
  }
}

/** A failure in one part of the page is isolated: the other parts, and the connection, carry on. */
export function handOver(batch: readonly StreamMessage[]): void {
  for (const listen of [...listeners]) {
    try {
      listen(batch);
    } catch (error) {
      reportError(error);
    }
  }
}

/** Messages are missing: every list is read again, and the page says so for long enough to be read. */
function catchUp(): void {
  streamState.value = "catching-up";
  resyncs.value += 1;
  setTimeout(() => {
    if (streamState.value === "catching-up") streamState.value = "live";
  }, noticeMs);
}

/** Waits, but, where the plan allows it, no longer than until the network or the user is back. */
function pause(stop: AbortSignal, { pauseMs, mayEndEarly }: Plan): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", endEarly);
      document.removeEventListener("visibilitychange", endIfVisible);
      stop.removeEventListener("abort", end);
      resolve();
    };
    const endEarly = () => {
      if (mayEndEarly) end();
    };
    const endIfVisible = () => {
      if (!isHidden()) endEarly();
    };
    const timer = setTimeout(end, pauseMs);
    addEventListener("online", endEarly);
    document.addEventListener("visibilitychange", endIfVisible);
    stop.addEventListener("abort", end);
  });
}
