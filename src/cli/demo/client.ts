import { type Clock, sleep } from "../../lib/clock.ts";
import { type Call, call } from "../http-client.ts";

/** The demo talks to its server as any client would: over HTTP and the published interface, nothing else. */
export interface DemoClient {
  /** @throws Error worded for people when the status is not the expected one */
  send(method: string, path: string, expected: number, options?: { token?: string; body?: unknown }): Promise<unknown>;
  /** Waits until the event's record is in the given state. @param patienceMs @default 15 s */
  whenState(eventId: string, state: string, token: string, patienceMs?: number): Promise<EventRecord>;
}

export interface EventRecord {
  state: string;
  errorReason: string | null;
  attempts: number;
  replayGroupId: string | null;
}

export const pollEveryMs = 20;
/** The demo's schedule takes a second; a machine under load gets some more. */
export const usualPatienceMs = 15_000;

export function createDemoClient(base: string, clock: Clock): DemoClient {
  const send: DemoClient["send"] = async (method, path, expected, { token, body } = {}) => {
    const options: Call = { method, body, headers: token === undefined ? {} : { Authorization: `Bearer ${token}` } };
    const { status, json } = await call(`${base}${path}`, options);
    if (status === expected) return json;
    throw new Error(`${method} ${path} answered ${status} instead of ${expected}: ${JSON.stringify(json)}`);
  };

  return {
    send,
    async whenState(eventId, state, token, patienceMs = usualPatienceMs) {
      const deadline = clock.monotonicMs() + patienceMs;
      for (;;) {
        const [record] = (await send("GET", `/v1/events/${eventId}`, 200, { token })) as EventRecord[];
        if (record?.state === state) return record;
        if (clock.monotonicMs() > deadline) throw new Error(`${eventId} is ${record?.state} instead of ${state}`);
        await sleep(clock, pollEveryMs);
      }
    },
  };
}
