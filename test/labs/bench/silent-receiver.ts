/**
 * The receiver of the dead webhooks: takes every connection and every request, and never answers. A process of its own, so
 * that thousands of hanging connections do not slow down the one that measures.
 *
 * Usage: bun silent-receiver.ts. Prints its port.
 */
const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {}, error() {} } });

process.stdout.write(`${listener.port}\n`);
// The bench holds the other end: when it is gone, so is this.
process.stdin.on("end", () => process.exit(0)).resume();
