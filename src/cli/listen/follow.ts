import { createParser } from "eventsource-parser";
import type { Clock } from "../../lib/clock.ts";
import { refusalOf, temporaryFailureIn } from "../client/answer.ts";
import { TemporaryFailure } from "../client/failure.ts";
import { type Outage, pause, pauseAfter } from "../client/patience.ts";
import type { OpenStream, ServerClient } from "../client/server.ts";
import type { Session } from "../client/session.ts";
import type { Source } from "./source.ts";

export interface FollowDeps {
  server: ServerClient;
  session: Pick<Session, "token" | "replace">;
  clock: Clock;
  outage: Outage;
  source: Pick<Source, "offer" | "missed">;
  /** Called when the stream opens for the first time. */
  onOpen(): void;
  signal: AbortSignal;
}

/**
 * A comment arrives every 15 s (rules, section 11). Once three are missing, the connection has died without notice: a laptop
 * slept, or a network changed.
 */
const silenceMs = 45_000;
const lookEveryMs = 15_000;
/** A stream that lasted this long was ended by something unrelated to an outage: its session expired, or a proxy's limit. */
const settledMs = 10_000;
/** A message has some 200 characters. */
const longestMessage = 2 ** 20;

/**
 * Keeps the account's stream open until the signal is aborted, then throws the signal's reason. It resumes where it was cut
 * off; where the server cannot resume, it tells the source that something was missed.
 *
 * @throws StartupError when the server refuses permanently
 */
export async function followStream(deps: FollowDeps): Promise<never> {
  const { server, session, clock, outage, source, onOpen, signal } = deps;
  let lastEventId: string | null = null;
  let wasOpen = false;
  let failures = 0;

  for (;;) {
    let openedAtMs = Number.POSITIVE_INFINITY;
    let failure = brokenOff("closed the stream");
    const connection = new AbortController();
    try {
      const stream = await open(connection.signal);
      openedAtMs = clock.monotonicMs();
      outage.ended();
      if (!wasOpen) onOpen();
      wasOpen = true;
      // There is nothing to resume from: what happened meanwhile is only in the history.
      if (lastEventId === null) source.missed();
      await read(stream, connection);
    } catch (error) {
      if (!(error instanceof TemporaryFailure)) throw error;
      failure = error;
    }
    const hasLasted = clock.monotonicMs() - openedAtMs >= settledMs;
    failures = hasLasted ? 1 : failures + 1;
    const waitMs = Math.max(pauseAfter(failures), failure.details.retryAfterMs ?? 0);
    // The end of a stream that lasted deserves no message as long as the next one can be opened.
    if (!hasLasted) outage.began(failure, waitMs);
    await pause(clock, waitMs, signal);
  }

  async function open(end: AbortSignal): Promise<OpenStream> {
    const headers = { Accept: "text/event-stream", ...(lastEventId !== null && { "Last-Event-ID": lastEventId }) };
    const ask = (token: string) => server.open("/v1/stream", { token, headers, signal: end });
    const token = session.token();
    let answer = await ask(token);
    if ("status" in answer && answer.status === 401) answer = await ask(await session.replace(token));
    if ("chunks" in answer) return answer;
    throw temporaryFailureIn(answer) ?? refusalOf(server, answer);
  }

  async function read({ chunks }: OpenStream, connection: AbortController): Promise<void> {
    const decoder = new TextDecoder();
    const parser = createParser({
      maxBufferSize: longestMessage,
      onEvent({ event = "", id, data }) {
        const message = parseObject(data);
        if (event === "resync" || message === null) source.missed();
        else source.offer(event, message);
        if (id !== undefined) lastEventId = id;
      },
      onError({ type }) {
        if (type === "max-buffer-size-exceeded")
          connection.abort(brokenOff("sent something other than an event stream"));
      },
    });
    let heardAtMs = clock.monotonicMs();
    let cancelLook = clock.after(lookEveryMs, look);

    function look(): void {
      const quietMs = clock.monotonicMs() - heardAtMs;
      if (quietMs >= silenceMs) {
        connection.abort(brokenOff(`sent nothing for ${Math.round(quietMs / 1000)} s`));
      } else cancelLook = clock.after(lookEveryMs, look);
    }

    try {
      for await (const chunk of chunks) {
        heardAtMs = clock.monotonicMs();
        parser.feed(decoder.decode(chunk, { stream: true }));
      }
    } finally {
      cancelLook();
    }
  }
}

const brokenOff = (reason: string) => new TemporaryFailure(reason, { retryAfterMs: null, mayHaveArrived: false });

function parseObject(data: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? { ...value } : null;
  } catch {
    return null;
  }
}
