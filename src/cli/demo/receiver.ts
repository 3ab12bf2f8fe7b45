/** One delivery as it came in: the bytes themselves, not what a parser makes of them. */
export interface Received {
  readonly eventId: string;
  readonly headers: Headers;
  readonly body: Uint8Array;
  /** The status it was answered with; null: no answer until its sender went away. */
  readonly status: number | null;
}

/** The tenant's side of the demo: a real HTTP server on loopback that keeps everything it receives. */
export interface DemoReceiver {
  readonly url: string;
  /** Everything received for an event, oldest first. */
  received(eventId: string): readonly Received[];
  stop(): Promise<void>;
}

/** @param answer the status for the nth delivery (from 1) of an event of a given type; null: no answer */
export function startDemoReceiver(answer: (eventType: string, nth: number) => number | null): DemoReceiver {
  const all: Received[] = [];
  const received = (eventId: string) => all.filter((each) => each.eventId === eventId);
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const body = new Uint8Array(await request.arrayBuffer());
      const eventId = request.headers.get("service-event-id") ?? "";
      const status = answer(eventTypeIn(body), received(eventId).length + 1);
      all.push({ eventId, headers: request.headers, body, status });
      if (status === null) await aborted(request.signal);
      return new Response(null, { status: status ?? 204 });
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/orders`,
    received,
    stop: () => server.stop(true),
  };
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

function eventTypeIn(body: Uint8Array): string {
  const { payload } = JSON.parse(new TextDecoder().decode(body)) as { payload?: { event_type?: string } };
  return payload?.event_type ?? "";
}
