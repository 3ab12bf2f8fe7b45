import { afterAll, expect, test } from "bun:test";
import { join } from "node:path";
import { ingestOne, register } from "../support/api-server.ts";
import { startReceiver } from "../support/receiver.ts";
import { startTestApp } from "../support/test-app.ts";

const receiver = startReceiver({
  answer: () => Response.json({ status: "accepted", eventId: "evt_1" }, { status: 202 }),
});
afterAll(() => receiver.stop());

/** The program on a terminal of its own, with a person who types as soon as something is shown. */
function runOnTerminal(
  words: readonly string[],
  awaited: string,
  react: string | (() => Promise<string>),
  env: Record<string, string> = {},
) {
  let shown = "";
  let answered = false;
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "../../src/main.ts"), ...words], {
    env: { POSTRIDER_URL: receiver.url, TERM: "dumb", ...env },
    terminal: {
      async data(terminal, chunk) {
        shown += new TextDecoder().decode(chunk);
        if (answered || !shown.includes(awaited)) return;
        answered = true;
        terminal.write(typeof react === "string" ? react : await react());
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

test.skipIf(!hasTerminals).each([
  ["API key: ", ["send", "{}"], {}],
  ["Account (tenant id or e-mail): ", ["events", "list"], {}],
  ["Password of t1: ", ["events", "list"], { POSTRIDER_LOGIN: "t1" }],
] as [string, string[], Record<string, string>][])(
  "Ctrl+C at %p ends the program with 130",
  async (question, words, env) => {
    const { code, shown } = await runOnTerminal(words, question, "\u0003", env);
    expect({ code, shown: shown.split(/\r?\n/) }).toEqual({ code: 130, shown: [question, ""] });
  },
);

test.skipIf(!hasTerminals)("a secret that Ctrl+C cuts off is not shown", async () => {
  const { code, shown } = await runOnTerminal(["send", "{}"], "API key: ", "half\u0003");
  expect({ code, shown }).toEqual({ code: 130, shown: "API key: \r\n" });
});

test.skipIf(!hasTerminals)(
  "Ctrl+C in place of a confirmation leaves everything as it is, and ends with 130",
  async () => {
    const app = await startTestApp();
    const account = await app.account();
    await register(account, receiver.url);
    const env = { POSTRIDER_URL: app.url, POSTRIDER_LOGIN: account.id, POSTRIDER_PASSWORD: account.password };
    const { code } = await runOnTerminal(["webhooks", "remove", receiver.url], "[y/N] ", "\u0003", env);
    expect({ code, left: (await account.get("/v1/tenants/webhooks")).body }).toMatchObject({ code: 130, left: [{}] });
    await app.stop();
  },
);

test.skipIf(!hasTerminals)("the closing line of listen is the last one", async () => {
  const app = await startTestApp();
  const account = await app.account();
  const hook = startReceiver();
  const listen = ["listen", "--forward-to", hook.url];
  const env = { POSTRIDER_URL: app.url, POSTRIDER_LOGIN: account.id, POSTRIDER_PASSWORD: account.password };
  const interruptAtOnce = async () => {
    await ingestOne(account);
    await hook.waitFor(1);
    return "\u0003";
  };
  const { code, shown } = await runOnTerminal(listen, "Press Ctrl+C to stop.", interruptAtOnce, env);
  await Promise.all([hook.stop(), app.stop()]);
  expect(code).toBe(0);
  // The terminal may echo the key before the line.
  expect(shown.trim().split(/\r?\n/).at(-1)?.replace(/^\^C/, "")).toStartWith("1 forwarded: 1 answered with 2xx.");
});
