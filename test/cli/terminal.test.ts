import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { startReceiver } from "../support/receiver.ts";

const receiver = startReceiver({
  answer: () => Response.json({ status: "accepted", eventId: "evt_1" }, { status: 202 }),
});
afterAll(() => receiver.stop());

/** The program on a terminal of its own, with a person who answers when asked. */
function runOnTerminal(words: readonly string[], question: string, typed: string) {
  let shown = "";
  let answered = false;
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), ...words], {
    env: { POSTRIDER_URL: receiver.url, TERM: "dumb" },
    terminal: {
      data(terminal, chunk) {
        shown += new TextDecoder().decode(chunk);
        if (answered || !shown.includes(question)) return;
        answered = true;
        terminal.write(typed);
      },
    },
  });
  return child.exited.then((code) => ({ code, shown }));
}

const hasTerminals = process.platform !== "win32";
const apiKey = "svc_sk_typed";

test.skipIf(!hasTerminals)("a secret that is typed is not shown", async () => {
  const { code, shown } = await runOnTerminal(["send", "{}"], "API key: ", `${apiKey}\r`);
  expect({ code, shown: shown.split(/\r?\n/).filter(Boolean) }).toEqual({ code: 0, shown: ["API key: ", "evt_1"] });
  expect(receiver.requests[0]?.headers.get("authorization")).toBe(`Bearer ${apiKey}`);
});

test.skipIf(!hasTerminals)("Ctrl+C in place of an answer ends the program", async () => {
  const { code, shown } = await runOnTerminal(["send", "{}"], "API key: ", "half\u0003");
  expect(code).toBe(1);
  expect(shown).toContain("No API key to send with.");
  expect(shown).not.toContain("half");
});
