import { type ReceivedRequest, type Receiver, startReceiver } from "../../../support/receiver.ts";

/** The receivers of the stories: each has a path, acknowledges at once or at the second try, and forgets nothing. */
export interface Witness {
  readonly url: string;
  /** What came to a path, as `event id` of each request. */
  received(path: string): readonly ReceivedRequest[];
  stop(): Promise<void>;
}

export function startWitness(): Witness {
  const tries = new Map<string, number>();
  const receiver: Receiver = startReceiver({
    answer({ path, headers }) {
      if (!path.endsWith("/flaky")) return new Response(null, { status: 204 });
      const key = `${path} ${headers.get("service-event-id")} ${headers.get("service-replay-group")}`;
      const nth = (tries.get(key) ?? 0) + 1;
      tries.set(key, nth);
      return new Response(null, { status: nth === 1 ? 503 : 204 });
    },
  });
  return {
    url: receiver.url,
    received: (path) => receiver.requests.filter((request) => request.path === path),
    stop: receiver.stop,
  };
}
