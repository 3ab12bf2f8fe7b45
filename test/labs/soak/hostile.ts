import {
  answerOk,
  type Behaviour,
  flood,
  gzipBomb,
  head,
  never,
  startHostileReceiver,
  trickle,
  write,
  writeAndReset,
} from "../../support/hostile-receiver.ts";

const bomb = gzipBomb();

/** Each at a port of its own, in turn, for one webhook in ten. */
const behaviours: readonly Behaviour[] = [
  never,
  (peer) => peer.resetAndDestroy(),
  trickle("HTTP/1.1 200 OK\r\n", 1_000, (n) => `X-${n}: a\r\n`),
  flood(head(200), "a".repeat(1_000)),
  write(bomb),
  writeAndReset("HTTP/1.1 2"),
  write(head(503, "Retry-After: 1", "Content-Length: 0")),
  // Closes the kept connection as the next request comes.
  (peer, nth) => (nth === 1 ? answerOk(peer, nth) : void peer.destroy()),
];

/** @returns their addresses, in turn */
export async function startHostileReceivers() {
  const receivers = await Promise.all(behaviours.map((onRequest) => startHostileReceiver({ onRequest })));
  return {
    urlOf: (n: number) => `http://127.0.0.1:${receivers[n % receivers.length]?.port}/hostile`,
    requests: () => receivers.reduce((sum, receiver) => sum + receiver.requests(), 0),
    close() {
      for (const receiver of receivers) receiver.close();
    },
  };
}
