import { describe, expect, test } from "bun:test";
import { ingestOne, register, settled, until } from "../support/api-server.ts";
import { receivedBy, replaysOf, summary, useReplays } from "./replay-world.ts";

const { relay, run, failing } = useReplays();

describe("filters", () => {
  test.each(["failed", "all"])("replay %s of a pattern says that a type is none", async (verb) => {
    const { account } = await failing(1);
    expect(await run(account, `replay ${verb} --type order.*`)).toMatchObject({
      code: 0,
      out: "No event matches; nothing to replay.",
      err: ["--type is one type, not a pattern. Try: a whole type, such as order.paid"],
    });
  });

  async function twoWebhooks() {
    const account = await relay.app.account();
    await account.setTier("business");
    const [one, two] = [relay.hooks.hook(404), relay.hooks.hook(404)];
    await register(account, one.url, two.url);
    const paid = await ingestOne(account, { event_type: "order.paid" });
    const other = await ingestOne(account, { event_type: "order.made" });
    for (const id of [paid, other]) await settled(account, id);
    for (const hook of [one, two]) {
      hook.answer = 200;
      hook.received.length = 0;
    }
    const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
    return { account, one, two, paid, other, id };
  }

  test.each([
    ["failed --type order.paid", ["paid"], ["paid"]],
    ["failed --webhook {id}", ["paid", "other"], []],
    ["failed --webhook {url} --type order.made --from 1h", ["other"], []],
    ["failed --to 1h", [], []],
    ["failed --code http_status --status 404", ["paid", "other"], ["paid", "other"]],
    ["failed --status 404 --webhook {url} --type order.paid", ["paid"], []],
    ["failed --code timeout", [], []],
    ["failed --status 500", [], []],
    ["all --type order.paid --from 1h --to 2999-01-01", ["paid"], ["paid"]],
    ["all --webhook {id} --type order.paid", ["paid"], []],
    ["event {paid} --webhook {id}", ["paid"], []],
  ] as const)("replay %s", async (words, byOne, byTwo) => {
    const { account, one, two, id, ...events } = await twoWebhooks();
    const line = words.replace("{id}", id).replace("{url}", one.url).replace("{paid}", events.paid);
    const { code } = await run(account, `replay ${line}`);
    expect(code).toBe(0);
    const received = { one: receivedBy(one).sort(), two: receivedBy(two).sort() };
    expect(received).toEqual({ one: byOne.map((name) => events[name]), two: byTwo.map((name) => events[name]) });
  });

  test("of one event for a webhook that is newer say where it goes without them", async () => {
    const { account, one, two, paid } = await twoWebhooks();
    const newer = relay.hooks.hook(200);
    await account.setTier("enterprise");
    await register(account, one.url, two.url, newer.url);
    expect(await run(account, `replay event ${paid} --webhook ${newer.url}`)).toMatchObject({
      code: 1,
      err: [
        `postrider: That webhook never had ${paid}. Try: postrider replay event ${paid}, which goes to every webhook that takes its type.`,
      ],
    });
    expect((await run(account, `replay event ${paid}`)).code).toBe(0);
    expect(receivedBy(newer)).toEqual([paid]);
  });

  test("are shown with the replay", async () => {
    const { account, id } = await twoWebhooks();
    await run(account, `replay failed --webhook ${id} --type order.paid`);
    const [replay] = await replaysOf(account);
    const { out } = await run(account, `replay show ${replay.id}`);
    expect(out).toContain(`webhook     ${id}\ntype        order.paid\nstatus `);
  });

  test("take a webhook's URL as it is shown, if only one has it", async () => {
    const account = await relay.app.account();
    await account.setTier("business");
    const [one, two] = [relay.hooks.hook(200), relay.hooks.hook(200)];
    await register(account, `${one.url}?token=secret`, two.url);
    const eventId = await ingestOne(account);
    await until(
      () => account.get(`/v1/events/state/DELIVERED`),
      ({ body }) => body.total === 2,
    );
    const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
    const shown = one.url;
    one.received.length = 0;
    two.received.length = 0;
    expect(await run(account, `replay event ${eventId} --webhook ${shown}`)).toMatchObject({ code: 0 });
    expect([receivedBy(one), receivedBy(two)]).toEqual([[eventId], []]);
    expect((await run(account, `events list --webhook ${shown}`)).out).toEndWith("1 record of 1.");

    const unknown = await run(account, "replay failed --webhook http://example.com/?token=secret");
    expect(unknown).toMatchObject({ code: 1, out: "" });
    expect(unknown.err).toEqual([
      expect.stringMatching(
        /"http:\/\/example\.com\/" is not the id or the URL of a registered webhook\. Try: --webhook wh_\w+ \(/,
      ),
    ]);
    expect(unknown.err.join()).toContain(`--webhook ${id} (${shown}), or wh_`);

    await register(account, `${one.url}?token=secret`, `${one.url}?token=other`);
    for (const line of ["replay failed", "events list"]) {
      const { code, err } = await run(account, `${line} --webhook ${shown}`);
      expect(code).toBe(1);
      expect(err.join()).toContain(`2 webhooks have the URL ${shown}, with different queries. Try: --webhook ${id} (`);
      expect(err.join()).not.toContain("secret");
    }
  });

  test("are shown without the query of a webhook's URL, in which secrets stand", async () => {
    const account = await relay.app.account();
    const url = `${relay.hooks.hook(200).url}?token=secret`;
    await register(account, url);
    await settled(account, await ingestOne(account));
    await run(account, `replay all --webhook ${url}`);
    const [replay] = await replaysOf(account);
    const { out } = await run(account, `replay show ${replay.id}`);
    expect(out).toMatch(/^webhook +http:\S+$/m);
    expect(out).not.toContain("secret");
  });

  test("what failed for a webhook that was removed goes to the one that is named, as the hint says", async () => {
    const { account } = await failing(2);
    await account.setTier("business");
    const [corrected, bystander] = [relay.hooks.hook(200), relay.hooks.hook(200)];
    await register(account, bystander.url, corrected.url);
    const webhooks: { id: string; url: string }[] = (await account.get("/v1/tenants/webhooks")).body;
    const id = webhooks.find(({ url }) => url === corrected.url)?.id ?? "";
    const first = await run(account, "replay failed --status 404");
    expect(first).toMatchObject({ code: 1, out: expect.stringContaining("2 events; 0 delivered, 2 skipped") });
    const hint = first.err.at(-1) ?? "";
    expect(hint).toBe(
      "What failed for a removed webhook goes to another only if you name it. Try: postrider replay failed --status 404 --webhook ID",
    );
    const line = hint.slice(hint.indexOf("replay failed")).replace("ID", id);
    expect((await run(account, `${line} --preview`)).out).toBe("2 events match.");
    expect(await run(account, line)).toMatchObject({ code: 0, out: summary("completed: 2 events; 2 delivered") });
    expect([corrected.received.length, bystander.received.length]).toEqual([2, 0]);
  });

  test("the confirmation says that only the webhooks where they failed so get them", async () => {
    const { account } = await failing(101);
    const { questions } = await run(account, "replay all --status 404", { answers: ["n"] });
    expect(questions).toEqual([
      "This delivers 101 events again, to the webhooks where they failed so. Continue? [y/N] ",
    ]);
  });

  test("the confirmation names the webhook", async () => {
    const { account, hook } = await failing(101);
    const { questions } = await run(account, `replay failed --webhook ${hook.url}`, { answers: ["n"] });
    expect(questions).toEqual([`This delivers 101 events again, to ${hook.url} alone. Continue? [y/N] `]);
  });
});
