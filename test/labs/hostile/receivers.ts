import { createAuthority } from "../../support/certificates.ts";
import { head, startHostileReceiver } from "../../support/hostile-receiver.ts";
import { startCatalogue } from "./catalogue.ts";

/**
 * The hostile receivers, in a process of their own, so that what they do is not charged to the server: prints one line
 * of JSON, and, when its standard input ends, another with what they saw.
 */
const authority = createAuthority("Hostile receivers' authority");
const { receivers, leftOut, longestConnections } = await startCatalogue(authority);

/**
 * Those of the warm-up: as slow, and well-meant. Each holds its answer for nearly the time of an attempt, and answers
 * with a page and without keeping the connection, as many do: hostile ones do not keep theirs either.
 */
const heldMs = 9_000;
const certificate = authority.issue({ hosts: ["127.0.0.1"] });
const answer = `${head(200, "Content-Length: 32768", "Connection: close")}${"a".repeat(32_768)}`;
const friendly: Record<"http" | "https", { quick: string; slow: string }> = {
  http: { quick: "", slow: "" },
  https: { quick: "", slow: "" },
};
for (const scheme of ["http", "https"] as const) {
  const tls = scheme === "https" ? certificate : undefined;
  const quick = await startHostileReceiver({ tls, onRequest: (peer) => void peer.end(answer) });
  const slow = await startHostileReceiver({
    tls,
    onRequest: (peer) => void setTimeout(() => peer.end(answer), heldMs),
  });
  friendly[scheme] = {
    quick: `${scheme}://127.0.0.1:${quick.port}`,
    slow: `${scheme}://127.0.0.1:${slow.port}`,
  };
}

process.stdout.write(`${JSON.stringify({ ca: authority.cert, receivers, leftOut, friendly })}\n`);
// As they saw it: how long the longest connection to each of them was.
process.stdin.on("end", () => process.stdout.write(JSON.stringify(longestConnections()), () => process.exit(0)));
process.stdin.resume();
