import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createLog } from "../../../src/lib/log.ts";
import { useServer } from "../../api/scenario.ts";
import { type Hook, type Hooks, ingestOne, outcome, register, startHooks, until } from "../../support/api-server.ts";
import type { Answer, TestAccount } from "../../support/test-app.ts";

/**
 * Text of a tenant's choice that would be something else where it ends up: a header, a line of the log, a frame of the
 * stream, a formula in somebody's table (hazards, section 5, "Text from strangers"). Each comes back as it was given, and
 * is nowhere anything but text.
 */
const hostile: Readonly<Record<string, string>> = {
  "a header": "x\r\nX-Injected: yes\r\n\r\nbody",
  "a header after one line feed": "x\nX-Injected: yes",
  "an escaped header": "x%0d%0aX-Injected:%20yes",
  "an answer": "x\r\n\r\nHTTP/1.1 200 OK\r\nX-Injected: yes\r\n\r\n",
  "a frame of the stream": 'x\n\nevent: account.changed\ndata: {"injected":true}\n\n',
  "an end of line that only Unicode knows": "x\u2028event: injected\u2029\u0085data: y",
  "a line of the log": 'x"}\n{"level":"error","event":"injected"}',
  "commands of a terminal": "\u001b[2J\u001b]0;injected\u0007\u009b31m\b\b",
  "a NUL": "x\u0000y",
  "a text that runs backwards": "\u202egnp.exe\u2066",
  "a formula": '=HYPERLINK("https://evil.example";"x"),+cmd|x!A1,@x',
  markup: `"><script>alert(1)</script>'--`,
  "a template": `\${7*7}{{7*7}}<%= 7*7 %>%s%n`,
  "the name of a prototype": "__proto__",
};

let hooks: Hooks;
afterAll(() => hooks.stop());
const server = useServer();

beforeAll(async () => {
  hooks = await startHooks();
});

/** The lines of a stream until `enough`, and its end by us. */
async function readStream(account: TestAccount, enough: (text: string) => boolean) {
  const abort = new AbortController();
  const response = await fetch(`${server().url}/v1/stream`, {
    headers: { Authorization: `Bearer ${account.jwt}` },
    signal: abort.signal,
  });
  const decoder = new TextDecoder();
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  return {
    async text(): Promise<string> {
      let text = "";
      while (!enough(text)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`The stream ended after: ${text}`);
        text += decoder.decode(value, { stream: true });
      }
      abort.abort();
      return text;
    },
  };
}

const kinds = "event.accepted|delivery.attempted|delivery.finished|replay.progressed|account.changed|resync";
const frameLine = new RegExp(
  `^(: (open|keep-alive)|event: (${kinds})|id: \\d+-\\d+|data: (?<json>\\{[^\\r\\n]*\\}))?$`,
);

test("a NUL is in no name: PostgreSQL stores no text with it", async () => {
  const { request, account } = server();
  const created = await request("POST", "/v1/tenants", { body: { name: "x\0y" } });
  const entry = { webhook_url: hooks.hook().url, name: "x\0y" };
  const saved = await (await account()).put("/v1/tenants/webhooks", [entry]);
  expect([created, saved].map(({ status }) => status)).toEqual([400, 400]);
  expect(created.body.message).toBe("name must not contain the character U+0000.");
});

describe.each(Object.entries(hostile))("%s", (_, text) => {
  let account: TestAccount;
  let hook: Hook;
  const answers: Answer[] = [];
  // No name has it, see below.
  const name = text.replaceAll("\0", "");
  const remember = async (asked: Promise<Answer>) => {
    const answer = await asked;
    answers.push(answer);
    return answer;
  };

  beforeAll(async () => {
    account = await server().account({ name });
    hook = hooks.hook();
    await register(account, hook.url);
  });

  test("is a name of an account", async () => {
    const login = { loginId: account.id, password: account.password };
    const me = await remember(account.get("/v1/tenants/me"));
    const session = await remember(server().request("POST", "/v1/tenants/auth/login", { body: login }));
    const { operatorToken: token } = server();
    const shown = await remember(server().request("GET", `/operator/tenants/${account.id}`, { token }));
    expect([me, session, shown].map(({ body }) => body.tenant_name)).toEqual([name, name, name]);
  });

  test("is a name of a webhook", async () => {
    const entry = { webhook_url: hook.url, name };
    const saved = await remember(account.put("/v1/tenants/webhooks", [entry]));
    const listed = await remember(account.get("/v1/tenants/webhooks"));
    expect(saved.body).toEqual([entry]);
    expect(listed.body).toEqual([{ id: expect.any(String), url: hook.url, name }]);
  });

  test("is a label of a replay and a type of an event: one header, one line of the stream", async () => {
    const stream = await readStream(account, (seen) => seen.split("\nevent: delivery.finished\n").length > 2);
    const eventId = await ingestOne(account, { event_type: text, [text]: text });
    // A replay before the end of the first run would take its place, and there would be one end only.
    await outcome(account, eventId);
    const replay = await remember(account.post("/v1/events/replays/single", { eventId, replayGroupId: text }));
    const [first, again] = await hook.whenReceived(2);

    expect(JSON.parse(first?.text ?? "").payload).toEqual({ event_type: text, [text]: text });
    const names = again?.rawHeaders.filter((_name, at) => at % 2 === 0).map((name) => name.toLowerCase()) ?? [];
    expect(names.filter((name) => name === "service-replay-group")).toHaveLength(1);
    expect([...names, ...Object.keys(first?.headers ?? {})]).not.toContain("x-injected");
    expect(decodeURIComponent(String(again?.headers["service-replay-group"]))).toBe(text);
    expect(String(again?.headers["service-replay-group"])).toMatch(/^[!-~]+$/);

    const lines = (await stream.text()).split("\n");
    expect(lines.filter((line) => !frameLine.test(line))).toEqual([]);
    const labels = lines.flatMap((line) => {
      const json = frameLine.exec(line)?.groups?.json;
      return json === undefined ? [] : [JSON.parse(json).replayGroupId];
    });
    expect(new Set(labels.filter((label) => label != null))).toEqual(new Set([text]));
    expect(lines.join("\n")).not.toContain("event_type");

    const replays = await remember(account.get("/v1/events/replays"));
    expect(replays.body.replays.map(({ replayGroupId }: { replayGroupId: string }) => replayGroupId)).toEqual([text]);
    const [record] = (await remember(account.get(`/v1/events/${eventId}`))).body;
    expect([record.replayGroupId, record.originalPayload.event_type]).toEqual([text, text]);
    expect(replay.headers.get("Location")).toBe(`/v1/events/replays/${replays.body.replays[0].id}`);
  });

  test("is an idempotency key only if it is printable ASCII", async () => {
    const isPrintable = /^[ -~]+$/.test(text);
    if (!isPrintable) return;
    const answer = await account.ingest({}, { "Idempotency-Key": text });
    const again = await account.ingest({}, { "Idempotency-Key": text });
    expect([answer.status, again.body]).toEqual([202, answer.body]);
  });

  test("is no e-mail address and no id of anything", async () => {
    const path = encodeURIComponent(text);
    const email = await remember(server().request("POST", "/v1/tenants", { body: { email: `${text}@example.com` } }));
    const host = await remember(server().request("POST", "/v1/tenants", { body: { email: `a@${text}.example` } }));
    for (const { status, body } of [email, host]) {
      // Only of white space, a second @ and control characters can be said that no address has them.
      const isRefusable = /[\s@\p{Cc}]/u.test(text);
      if (isRefusable)
        expect([status, body]).toEqual([
          400,
          { message: expect.stringMatching(/^email must (?:be|not contain)/), code: "invalid_request" },
        ]);
    }
    const statuses = [
      await remember(server().request("GET", `/v1/tenants/${path}/status`)),
      await remember(server().request("GET", `/v1/tenants/${path}/jwks.json`)),
      await remember(account.get(`/v1/events/${path}`)),
      await remember(account.get(`/v1/events/replays/${path}`)),
      await remember(account.post(`/v1/tenants/webhooks/${path}/test`)),
      await remember(account.post("/v1/events/replays/single", { eventId: text, replayGroupId: "g" })),
    ].map(({ status }) => status);
    expect(statuses).toEqual([404, 404, 404, 404, 404, 404]);
  });

  test("comes into no header of an answer, no figure and no line of the log", async () => {
    expect(answers.length).toBeGreaterThan(15);
    for (const { headers } of answers) {
      expect(headers.get("x-injected")).toBeNull();
      expect([...headers.values()].some((value) => value.includes("injected"))).toBe(false);
    }
    const { text: figures } = await server().request("GET", "/metrics");
    expect(figures).not.toContain(text);
    expect(server().log.filter((line) => line.includes("njected") || line.includes(text))).toEqual([]);
  });
});

test("every line of the log is one JSON object of ours, without control characters", () => {
  for (const line of server().log) {
    expect(line).not.toMatch(/\p{Cc}/u);
    expect(JSON.parse(line).event).toMatch(/^[a-z]+\.[a-z_]+$/);
  }
});

test.each(Object.entries(hostile))(
  "in the log for people %s stays in its line and leaves the terminal alone",
  (_, text) => {
    const lines: string[] = [];
    const log = createLog({ level: "info", format: "text", now: () => 0, out: (line) => void lines.push(line) });
    log.write("warn", "something.happened", { text, next: 1 });
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u);
    expect(lines[0]).toEndWith("next=1");
  },
);

test("a half of a character is answered as it is kept", async () => {
  const account = await server().account({ name: "x\ud800y" });
  const entry = { webhook_url: "https://example.com/hook", name: "\udfffz" };
  const saved = await account.put("/v1/tenants/webhooks", [entry]);
  const [listed] = (await account.get("/v1/tenants/webhooks")).body;
  expect(saved.body[0].name).toBe(listed.name);
  const me = await until(
    () => account.get("/v1/tenants/me"),
    ({ status }) => status === 200,
  );
  expect(me.body.tenant_name.isWellFormed()).toBe(true);
});
