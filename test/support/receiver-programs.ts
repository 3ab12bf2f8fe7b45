const runBy = (name: string, file: string, program: string, command = (path: string) => [program, path]) => ({
  name,
  file,
  program,
  command,
});

/** Not `go run`, which leaves the program running when it is killed itself. */
const builtByGo = (path: string) => ["sh", "-c", 'go build -o "$0.built" "$0" && exec "$0.built"', path];

/** The receivers that we give to tenants, in their languages, and what it takes to run one next to a server. */
export const receiverPrograms = [
  runBy("receiver.mjs in Node.js", "receiver.mjs", "node"),
  runBy("receiver.mjs in Bun", "receiver.mjs", process.execPath),
  runBy("receiver.py", "receiver.py", "python3"),
  runBy("receiver.go", "receiver.go", "go", builtByGo),
];

export const isMissing = (program: string) => Bun.which(program) === null;

export function freePort(): number {
  const probe = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
  const { port } = probe;
  probe.stop(true);
  return Number(port);
}

/** To compile its first program, Go compiles its standard library: on a busy machine that took more than half a minute. */
const listeningTries = 2_000;

/** Waits until a program in another language, which gives no other sign, is listening. */
export async function listening(port: number): Promise<void> {
  for (let tries = 0; tries < listeningTries; tries += 1) {
    try {
      await Bun.connect({ hostname: "127.0.0.1", port, socket: { open: (socket) => void socket.end(), data() {} } });
      return;
    } catch {
      await Bun.sleep(50);
    }
  }
  throw new Error(`Nothing listens on ${port}`);
}

export type Program = Bun.Subprocess<"ignore", "pipe", "pipe">;

/** Reads a program's output until a text appears in it. */
export async function outputWith(child: Program, text: string): Promise<string> {
  let output = "";
  // The stream stays open: a program whose output is no longer read would be killed by its next line.
  const reader = child.stdout.getReader();
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    output += new TextDecoder().decode(piece.value);
    if (!output.includes(text)) continue;
    reader.releaseLock();
    return output;
  }
  throw new Error(`The program ended without "${text}": ${output}${await new Response(child.stderr).text()}`);
}

/**
 * Sends something that only looks like a delivery; returns the status of the answer.
 * @param keyId the key that is said to have signed it
 */
export async function sendForgery(port: number, keyId: string): Promise<number> {
  const { status } = await fetch(`http://127.0.0.1:${port}/hook`, {
    method: "POST",
    headers: {
      "service-signature": Buffer.alloc(64).toString("base64"),
      "service-key-id": keyId,
      "webhook-id": "evt_0",
      "webhook-timestamp": String(Math.floor(Date.now() / 1000)),
      "webhook-signature": `v1,${Buffer.alloc(32).toString("base64")}`,
    },
    body: '{"eventId":"evt_0"}',
  });
  return status;
}
