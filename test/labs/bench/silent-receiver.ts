import { receiveDeliveries } from "./receiver.ts";

/**
 * The receiver of the dead webhooks: takes every connection and every request, and never answers. With `until-told` it answers
 * until a line comes on its standard input. A process of its own, so that thousands of hanging connections do not slow down the
 * one that measures.
 *
 * Usage: bun silent-receiver.ts [until-told]. Prints its port.
 */
let hangs = process.argv[2] !== "until-told";
const answering = receiveDeliveries({ take() {}, taken() {} });

const listener = Bun.listen({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    ...answering,
    data(socket, chunk) {
      if (!hangs) answering.data?.(socket, chunk);
    },
  },
});

process.stdout.write(`${listener.port}\n`);
process.stdin.on("data", () => {
  hangs = true;
});
// The bench holds the other end: when it is gone, so is this.
process.stdin.on("end", () => process.exit(0)).resume();
