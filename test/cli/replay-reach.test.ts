import { describe, expect, test } from "bun:test";
import { type Hook, ingestOne, register, settled, until } from "../support/api-server.ts";
import type { TestAccount } from "../support/test-app.ts";
import { type, useTyped } from "../support/typed.ts";

const relay = useTyped();
const { run } = relay;

const replaysOf = async (account: TestAccount) => (await account.get("/v1/events/replays")).body.replays;
const summary = (text: string) => expect.stringMatching(new RegExp(`^rpl_\\w+ ${text}$`));

describe("what keeps webhooks from getting a replay", () => {
  const statuses = { removed: 413, disabled: 410, paused: 415, active: 416 };
  type Path = keyof typeof statuses;

  /** Events have failed for each webhook, each with its own status; then the webhooks have become what their names say. */
  async function ofEveryState() {
    const account = await relay.app.account();
    await account.setTier("enterprise");
    const of = {} as Record<Path, Hook & { id: string; event: string }>;
    for (const [path, status] of Object.entries(statuses) as [Path, number][]) {
      of[path] = Object.assign(relay.hooks.hook(status), { id: "", event: "" });
    }
    const become = async (...group: Path[]) => {
      await register(account, ...group.map((path) => ({ webhook_url: of[path].url, event_types: [`order.${path}`] })));
      const listed: { id: string; url: string }[] = (await account.get("/v1/tenants/webhooks")).body;
      for (const path of group) of[path].id = listed.find(({ url }) => url === of[path].url)?.id ?? "";
    };
    const send = async (path: Path) => {
      of[path].event = await ingestOne(account, { event_type: `order.${path}` });
      await settled(account, of[path].event);
    };
    await become("removed");
    await send("removed");
    await become("disabled", "paused", "active");
    for (const path of ["disabled", "disabled", "disabled", "paused", "active"] as const) await send(path);
    for (const path of ["disabled", "paused", "active"] as const) of[path].answer = 200;
    await run(account, `webhooks pause ${of.paused.id}`);
    return { account, of };
  }

  test("is said of webhooks that the filters concern, and of no others", async () => {
    const { account, of } = await ofEveryState();
    const futile = "Nothing would be sent: no webhook that could get it is registered and enabled.";
    const removed = (words: string) =>
      `What failed for a removed webhook goes to another only if you name it. Try: postrider replay ${words} --webhook ID`;
    const disabled = `Webhook ${of.disabled.id} is disabled. Try: postrider webhooks enable ${of.disabled.id}`;
    const paused = `Webhook ${of.paused.id} is paused. Try: postrider webhooks resume ${of.paused.id}`;
    const rows: [string, string[]][] = [
      ["failed", [disabled, paused]],
      ["failed --status 413", [futile, removed("failed --status 413")]],
      ["all --status 413", [futile, removed("all --status 413")]],
      ["failed --status 410", [futile, disabled]],
      ["failed --status 415", [paused]],
      ["failed --status 416", []],
      ["failed --code http_status", [disabled, paused, removed("failed --code http_status")]],
      ["failed --type order.active", []],
      ["all --type order.active", []],
      ["all --type order.paused", [paused]],
      [`failed --webhook ${of.disabled.id}`, [futile, disabled]],
      ["all", [disabled, paused]],
    ];
    for (const [words, hints] of rows) {
      const { err } = await run(account, `replay ${words} --preview`);
      expect({ words, err }).toEqual({ words, err: hints });
    }
  });

  test("counts a webhook that waits for a retry of what another has failed to take", async () => {
    const account = await relay.app.account();
    await account.setTier("enterprise");
    const [gone, later] = [relay.hooks.hook(410), relay.hooks.hook(503)];
    await register(account, gone.url, later.url);
    for (let n = 1; n <= 3; n += 1) {
      await ingestOne(account);
      await until(
        () => account.get("/v1/events?code=http_status"),
        ({ body }) => body.total === 2 * n,
      );
    }
    const { body } = await until(
      () => account.get("/v1/tenants/webhooks?expand=true"),
      ({ body: [first] }) => first.state === "disabled",
    );
    const [a, b] = body.map(({ id }: { id: string }) => id);
    const disabled = `Webhook ${a} is disabled. Try: postrider webhooks enable ${a}`;
    const paused = `Webhook ${b} is paused. Try: postrider webhooks resume ${b}`;
    const preview = (words: string) => run(account, `replay failed ${words}--preview`);
    expect((await preview("--code http_status ")).err).toEqual([disabled]);
    await run(account, `webhooks pause ${b}`);
    expect((await preview("")).err).toEqual([disabled, paused]);
    expect((await preview("--status 410 ")).err[0]).toStartWith("Nothing would be sent");
    await run(account, `webhooks resume ${b}`);
    later.answer = 200;
    const { out } = await run(account, "replay failed --code http_status");
    expect(out).toEqual(summary("completed: 3 events; 3 delivered, 3 skipped, as their webhook is disabled"));
  });

  test("is said after deliveries were skipped, and only what is so", async () => {
    const { account, of } = await ofEveryState();
    const rows = [
      ["failed --status 413", "1 event; 0 delivered, 1 skipped, as their webhook is not registered", 1],
      ["failed --status 410", "3 events; 0 delivered, 3 skipped, as their webhook is disabled", 1],
      [`event ${of.disabled.event}`, "1 event; 0 delivered, 1 skipped, as their webhook is disabled", 1],
      [`event ${of.removed.event}`, "1 event; 0 delivered, 1 skipped, as their webhook is not registered", 0],
    ] as const;
    for (const [words, outcome, hints] of rows) {
      const { out, err } = await run(account, `replay ${words}`);
      expect({ words, out, hints: err.length - 1 }).toEqual({ words, out: summary(`completed: ${outcome}`), hints });
    }
    expect((await run(account, "replay list")).out.split("\n")[2]).toMatch(
      / single {2,}1 {2,}0 {2,}0 {2,}0 {2,}1 {2,}rpl_/,
    );
  });

  test.each(["failed --type order.paused", "all --status 415", "event {event}"])(
    "is said while replay %s waits for a paused webhook, and when it is shown",
    async (words) => {
      const { account, of } = await ofEveryState();
      const { id, event } = of.paused;
      const hint = `Webhook ${id} is paused. Try: postrider webhooks resume ${id}`;
      const { err, when, ended, out } = type(
        relay.app.url,
        account,
        `replay ${words.replace("{event}", event)}`.split(" "),
      );
      await when(err, (line) => line === hint);
      const [replay] = await replaysOf(account);
      expect((await run(account, `replay show ${replay.id}`)).err).toEqual([hint]);
      await run(account, `webhooks resume ${id}`);
      expect(await ended).toBe(0);
      expect(out).toEqual([summary("completed: 1 event; 1 delivered")]);
      expect(err.filter((line) => line === hint)).toHaveLength(1);
    },
  );
});
