import { afterAll, describe, expect, test } from "bun:test";
import { gate, ingestOne, register, settled, until } from "../support/api-server.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { type } from "../support/typed.ts";
import { receivedBy, replaysOf, summary, useReplays } from "./replay-world.ts";

const { relay, run, failing } = useReplays();
const receivers: Receiver[] = [];

afterAll(() => Promise.all(receivers.map((receiver) => receiver.stop())));

describe("replay event", () => {
  test("delivers it again and says how that ended", async () => {
    const { account, hook, ids } = await failing(2);
    const { code, out, err } = await run(account, `replay event ${ids[1]} --label again`);
    expect({ code, out }).toEqual({ code: 0, out: summary("completed: 1 event; 1 delivered") });
    expect(err).toEqual([summary("has started, with the label again.")]);
    expect(receivedBy(hook)).toEqual([ids[1]]);
    expect(await replaysOf(account)).toMatchObject([{ kind: "single", replayGroupId: "again" }]);
  });

  test("ends with 1 if it fails again, and says how to find out why", async () => {
    const { account, hook, ids } = await failing(1);
    hook.answer = 410;
    const { code, out, err } = await run(account, `replay event ${ids[0]}`);
    expect({ code, out }).toEqual({ code: 1, out: summary("completed: 1 event; 0 delivered, 1 failed") });
    expect(err.at(-1)).toBe("To see why some failed: postrider events list --state failed");
  });

  test("ends with 1 if there is no webhook that it could go to", async () => {
    const account = await relay.app.account();
    const { code, out } = await run(account, `replay event ${await ingestOne(account)}`);
    expect({ code, out }).toEqual({
      code: 1,
      out: summary("completed: 1 event; 0 delivered, 1 skipped, as their webhook is not registered"),
    });
  });

  test("names the webhook that is disabled, and what enables it", async () => {
    const { account, hook } = await failing(3);
    hook.answer = 410;
    await run(account, "replay failed");
    hook.answer = 200;
    const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
    const hint = `Webhook ${id} is disabled. Try: postrider webhooks enable ${id}`;
    expect(await run(account, "replay failed --preview")).toMatchObject({ out: "3 events match.", err: [hint] });
    const { code, out, err } = await run(account, `replay failed --webhook ${id}`);
    expect({ code, out }).toEqual({
      code: 1,
      out: summary("completed: 3 events; 0 delivered, 3 skipped, as their webhook is disabled"),
    });
    expect(err.at(-1)).toBe(hint);
    const [replay] = await replaysOf(account);
    expect((await run(account, `replay show ${replay.id}`)).err).toEqual([hint]);
    expect((await run(account, `webhooks enable ${id}`)).code).toBe(0);
    expect((await run(account, "replay failed")).out).toEqual(summary("completed: 3 events; 3 delivered"));
  });

  test("says for how many events there was nothing to send, whatever the reason", async () => {
    const account = await relay.app.account();
    const { url } = relay.hooks.hook(200);
    await account.put("/v1/tenants/webhooks", [{ webhook_url: url, event_types: ["order.paid"] }]);
    await settled(account, await ingestOne(account, { event_type: "order.paid" }));
    await ingestOne(account, { event_type: "order.made" });
    expect(await run(account, "replay all")).toMatchObject({
      code: 0,
      out: summary("completed: 2 events; 1 delivered, for 1 event there was nothing to send"),
      err: [expect.anything()],
    });
  });

  test("ends with 1 if a later replay overtakes it, and says where to look", async () => {
    const { account, hook, ids } = await failing(1);
    hook.answer = 503;
    const first = type(relay.app.url, account, ["replay", "event", ids[0] ?? ""]);
    await until(
      () => account.get(`/v1/events/${ids[0]}`),
      ({ body: [record] }) => record.attempts === 2,
    );
    hook.answer = 200;
    expect(await run(account, `replay event ${ids[0]}`)).toMatchObject({ code: 0 });
    expect(await first.ended).toBe(1);
    expect(first.out).toEqual([summary("completed: 1 event; 0 delivered, 1 overtaken by a later replay")]);
    expect(first.err.at(-1)).toBe("To see how the later replay is doing: postrider replay list");
    const [, , overtaken] = (await run(account, "replay list")).out.split("\n");
    expect(overtaken).toMatch(/ single {2,}1 {2,}0 {2,}0 {2,}1 {2,}0 {2,}rpl_/);
  });

  test("--json prints the replay as the server has it at the end", async () => {
    const { account, ids } = await failing(1);
    const { code, out } = await run(account, `replay event ${ids[0]} --json`);
    expect(code).toBe(0);
    const [replay] = await replaysOf(account);
    expect(JSON.parse(out)).toEqual(replay);
    expect(replay.replayGroupId).toMatch(/^event-\d{8}-\d{6}$/);
    expect(out).not.toContain("\n");
  });

  test("of an event that is not there", async () => {
    const account = await relay.app.account();
    const { code, out, err } = await run(account, "replay event evt_1");
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toEqual(["postrider: There is no event with this eventId. Try: postrider events list"]);
  });
});

describe("replay failed", () => {
  test("delivers what has failed, and nothing else", async () => {
    const { account, hook, ids } = await failing(3);
    await settled(account, await ingestOne(account));
    hook.received.length = 0;
    const { code, out, questions } = await run(account, "replay failed");
    expect({ code, out, questions }).toEqual({
      code: 0,
      out: summary("completed: 3 events; 3 delivered"),
      questions: [],
    });
    expect(receivedBy(hook).sort()).toEqual([...ids]);
  });

  test("with nothing that has failed starts nothing", async () => {
    const account = await relay.app.account();
    expect(await run(account, "replay failed")).toMatchObject({ code: 0, out: "No event matches; nothing to replay." });
    expect(await run(account, "replay failed --json")).toMatchObject({ code: 0, out: '{"selected":0}' });
    expect(await replaysOf(account)).toEqual([]);
  });

  test("with nothing that has failed says how to send what waits for a retry", async () => {
    const account = await relay.app.account();
    const hook = relay.hooks.hook(500);
    await register(account, hook.url);
    const eventId = await ingestOne(account, { event_type: "order.paid" });
    await until(
      () => account.get(`/v1/events/${eventId}`),
      ({ body: [record] }) => record.attempts === 1,
    );
    const hint = "Deliveries that will be retried do not count as failed. To send them now: postrider replay all";
    const hintAfter = async (words: string) => (await run(account, `replay failed${words}`)).err;
    expect(await hintAfter("")).toEqual([`${hint} --status N (or --code CODE)`]);
    expect(await hintAfter(" --type order.paid --preview")).toEqual([
      `${hint} --type order.paid --status N (or --code CODE)`,
    ]);
    expect(await hintAfter(" --status 500 --from 1h")).toEqual([`${hint} --status 500 --from 1h`]);
    expect(await hintAfter(" --json")).toEqual([]);
    expect(await hintAfter(" --code webhook_removed")).toEqual([]);
    hook.answer = 200;
    expect(await run(account, "replay all --status 500 --from 1h")).toMatchObject({
      code: 0,
      out: summary("completed: 1 event; 1 delivered"),
    });
  });

  test("--preview counts, and starts nothing", async () => {
    const { account } = await failing(101);
    expect(await run(account, "replay failed --preview")).toMatchObject({
      code: 0,
      out: "101 events match.",
    });
    expect(await run(account, "replay failed --preview --json")).toMatchObject({ code: 0, out: '{"selected":101}' });
    expect(await replaysOf(account)).toEqual([]);
  });

  const question = "This delivers 101 events again, to the webhooks that have not acknowledged them. Continue? [y/N] ";

  test.each([
    ["n", "Nothing was replayed."],
    ["", "Nothing was replayed."],
    [null, "postrider: 101 events match, and a replay of more than 100 needs confirmation. Try: --yes"],
  ])("above 100 events asks; with the answer %p nothing is replayed", async (answer, message) => {
    const { account } = await failing(101);
    const result = await run(account, "replay failed", { answers: answer === null ? [] : [answer] });
    expect(result).toEqual({ code: 1, out: "", err: [message], questions: [question] });
    expect(await replaysOf(account)).toEqual([]);
  });

  test.each([
    ["replay failed", ["y"], 1],
    ["replay failed --yes", [], 0],
  ])("%s, answered %p, replays them", async (line, answers, asked) => {
    const { account, hook } = await failing(101);
    const { code, out, questions } = await run(account, line, { answers });
    expect({ code, out }).toEqual({ code: 0, out: summary("completed: 101 events; 101 delivered") });
    expect(questions).toHaveLength(asked);
    expect(hook.received).toHaveLength(101);
  });

  test("100 are not asked about", async () => {
    const { account } = await failing(100);
    expect(await run(account, "replay failed")).toMatchObject({ code: 0, questions: [] });
  });

  test("--detach prints the id and does not wait", async () => {
    const { account, hook } = await failing(1);
    const held = gate();
    hook.answer = held.answer;
    const { code, out } = await run(account, "replay failed --detach");
    const [replay] = await replaysOf(account);
    expect({ code, out }).toEqual({ code: 0, out: replay.id });
    expect(replay.status).not.toBe("completed");
    held.open();
  });
});

describe("replay all", () => {
  test("delivers everything again, also what was acknowledged", async () => {
    const { account, hook, ids } = await failing(1);
    const delivered = await ingestOne(account);
    await settled(account, delivered);
    hook.received.length = 0;
    expect(await run(account, "replay all")).toMatchObject({ out: summary("completed: 2 events; 2 delivered") });
    expect(receivedBy(hook).sort()).toEqual([...ids, delivered]);
  });

  test.each([
    ["--from 1h", 2],
    ["--to 1h", 0],
    ["--from 2020-01-01 --to 2999-01-01", 2],
    ["--from 2020-01-01 --to 2020-01-02T00:00Z", 0],
  ])("%s selects %i of two", async (words, selected) => {
    const { account } = await failing(2);
    const { code, out } = await run(account, `replay all ${words} --preview --json`);
    expect({ code, out }).toEqual({ code: 0, out: JSON.stringify({ selected }) });
  });
});

describe("while a replay runs", () => {
  async function begin(line = "replay failed") {
    const { account, hook, ids } = await failing(3);
    const held = gate();
    let n = 0;
    hook.answer = (response, nth, received) => {
      n += 1;
      if (n === 1) response.writeHead(200).end();
      else if (typeof held.answer === "function") held.answer(response, nth, received);
    };
    return { account, held, hook, ids, ...type(relay.app.url, account, line.split(" ")) };
  }

  test("a line shows how far it is, and goes when it ends", async () => {
    const { progress, when, held, ended, out } = await begin();
    await when(progress, (line) => /^rpl_\w+ running: 3 events; 1 delivered, 2 waiting {2}/.test(line));
    held.open();
    expect(await ended).toBe(0);
    expect(progress.at(-1)).toBe("");
    expect(out).toEqual([summary("completed: 3 events; 3 delivered")]);
  });

  test("Ctrl+C asks nothing, leaves it running, and says how to go on", async () => {
    const { account, progress, when, held, ended, interrupt, out, err, questions } = await begin();
    await when(progress, (line) => line.includes("1 delivered"));
    interrupt();
    expect(await ended).toBe(130);
    const [{ id }] = await replaysOf(account);
    expect(out).toEqual([summary("running: 3 events; 1 delivered, 2 waiting")]);
    expect(err.at(-1)).toBe(
      `${id} keeps running. To follow it: postrider replay show ${id} --follow. To stop it: postrider replay cancel ${id}`,
    );
    expect({ last: progress.at(-1), questions }).toEqual({ last: "", questions: [] });
    held.open();
    expect(await run(account, `replay show ${id} --follow`)).toMatchObject({
      code: 0,
      out: summary("completed: 3 events; 3 delivered"),
    });
  });

  test("Ctrl+C with --json still prints one object", async () => {
    const { progress, when, held, ended, interrupt, out } = await begin("replay failed --json");
    await when(progress, (line) => line.includes("1 delivered"));
    interrupt();
    expect(await ended).toBe(130);
    held.open();
    expect(out.map((line) => JSON.parse(line))).toMatchObject([{ status: "running", delivered: 1 }]);
  });

  test("a second one waits for it, and can be cancelled", async () => {
    const { account, held, ended, progress, when } = await begin();
    await when(progress, (line) => line.includes("1 delivered"));
    const { out: id } = await run(account, "replay all --detach");
    const follower = type(relay.app.url, account, ["replay", "show", id, "--follow"]);
    await follower.when(follower.progress, (line) => line === `${id} waits for an earlier replay of the account`);
    const { code, out } = await run(account, `replay cancel ${id}`);
    expect({ code, out }).toEqual({ code: 0, out: summary("cancelled: 3 events; 0 delivered") });
    expect(await follower.ended).toBe(1);
    held.open();
    expect(await ended).toBe(0);
  });
});

test("replay cancel takes back what waits for a retry, and the replay says how many", async () => {
  const { account, hook } = await failing(2);
  hook.answer = 503;
  const { out: id } = await run(account, "replay failed --detach");
  await hook.whenReceived(2);
  await until(
    () => run(account, `replay show ${id} --json`),
    ({ out }) => JSON.parse(out).queued === 2,
  );
  await until(
    () => account.get("/v1/events"),
    ({ body }) => body.events.every(({ attempts }: { attempts: number }) => attempts === 2),
  );
  const taken = summary("cancelled: 2 events; 0 delivered, 2 taken back");
  expect(await run(account, `replay cancel ${id}`)).toMatchObject({ code: 0, out: taken, err: [] });
  expect((await run(account, `replay show ${id}`)).out).toContain("deliveries  0 delivered, 2 taken back\n");
});

test("replay cancel of one that has completed says that there was nothing to cancel", async () => {
  const { account } = await failing(1);
  const { out: ended } = await run(account, "replay failed");
  const [{ id }] = await replaysOf(account);
  expect(await run(account, `replay cancel ${id}`)).toMatchObject({
    code: 0,
    out: ended,
    err: [`${id} had already completed; there was nothing to cancel.`],
  });
});

describe("replay list and show", () => {
  test("say what became of replays", async () => {
    const { account, hook, ids } = await failing(2);
    expect(await run(account, "replay list")).toMatchObject({ code: 0, out: "Nothing was replayed yet." });
    hook.answer = 410;
    await run(account, `replay event ${ids[0]} --label first`);
    hook.answer = 200;
    await run(account, "replay failed --label second");
    const { out } = await run(account, "replay list");
    const [head, second, first, foot] = out.split("\n");
    expect(head).toMatch(
      /^started {2,}status {2,}kind {2,}events {2,}delivered {2,}failed {2,}overtaken {2,}skipped {2,}replay {2,}label$/,
    );
    expect(second).toMatch(/Z {2}completed {2}failed {2}2 {7}2 {10}0 {7}0 {10}0 {8}rpl_\w+ {2}second$/);
    expect(first).toMatch(/Z {2}completed {2}single {2}1 {7}0 {10}1 {7}0 {10}0 {8}rpl_\w+ {2}first$/);
    expect(foot).toBe("2 replays of 2.");

    const [replay] = await replaysOf(account);
    const shown = await run(account, `replay show ${replay.id}`);
    expect(shown.out).toContain("label       second\n");
    expect(shown.out).toContain("deliveries  2 delivered\n");
    expect((await run(account, `replay show ${replay.id} --json`)).out).toBe(JSON.stringify(replay));
    const list = await account.get("/v1/events/replays?size=1&page=1");
    expect((await run(account, "replay list --size 1 --page 1 --json")).out).toBe(list.text);
  });
});

describe("what cannot be done is one line with a remedy", () => {
  test.each([
    [
      "replay",
      2,
      '"postrider replay" needs one of event, failed, all, list, show, cancel. Try: postrider replay event ID',
    ],
    ["replay faild", 2, 'There is no command "replay faild". Try: postrider replay failed'],
    ["replay event", 2, '"postrider replay event" needs ID. Try: postrider replay event ID'],
    ["replay all --from soon", 2, '--from must be a duration, or a time in ISO 8601, not "soon". Try: --from 10m'],
    ["replay failed --label=", 2, "--label must not be empty. Try: --label after-the-outage"],
    ["replay all --from 1h --to 2h", 2, "from must not be after to. Try: postrider help replay"],
    ["replay failed --webhook wh_1", 1, "The account has no webhooks. Try: postrider webhooks add URL"],
    ["replay failed --status 5xx", 2, "status must be a whole number. Try: postrider help replay"],
    ["replay failed --code htp", 2, "code must be one of http_status"],
    ["replay event evt_1 --type x", 2, '"postrider replay event" has no flag --type.'],
    ["replay show rpl_1", 1, "The account has no replay with this id. Try: postrider replay list"],
    ["replay show rpl_1 --follow", 1, "The account has no replay with this id. Try: postrider replay list"],
    ["replay cancel ../x", 1, "The account has no replay with this id. Try: postrider replay list"],
    ["replay show ..", 2, '".." is not an id. Try: postrider replay list'],
    ["replay show . --follow", 2, '"." is not an id. Try: postrider replay list'],
    ["replay cancel ..", 2, '".." is not an id. Try: postrider replay list'],
    ["replay list --size 0", 2, "size must be at least 1. Try: postrider help replay list"],
  ])("%s: exit code %i", async (line, expected, message) => {
    const { code, out, err } = await run(await relay.app.account(), line);
    expect({ code, out }).toEqual({ code: expected, out: "" });
    expect(err).toHaveLength(1);
    expect(err[0]).toStartWith(`postrider: ${message}`);
  });

  function serverThatAnswers(start: () => Response): Receiver {
    const receiver = startReceiver({
      answer({ path }) {
        if (path === "/v1/tenants/me") return Response.json({ tenant_id: "t1" });
        return path.endsWith("/preview") ? Response.json({ selected: 1 }) : start();
      },
    });
    receivers.push(receiver);
    return receiver;
  }

  test("a start that may have arrived is not repeated", async () => {
    const server = serverThatAnswers(() => new Response("bad gateway", { status: 502 }));
    const { ended, err } = type(server.url, { jwt: "x" }, ["replay", "failed"]);
    expect(await ended).toBe(1);
    expect(err).toEqual([
      `postrider: ${server.url} answered 502. The replay may have started. Try: postrider replay list`,
    ]);
    expect(server.requests.filter(({ path }) => path.endsWith("/failed"))).toHaveLength(1);
  });

  test("too many are refused at once", async () => {
    const message = "The account has 11 unfinished replays; wait for one to finish, or cancel one.";
    const server = serverThatAnswers(() => Response.json({ message, code: "too_many_replays" }, { status: 429 }));
    const { ended, err } = type(server.url, { jwt: "x" }, ["replay", "failed"]);
    expect(await ended).toBe(1);
    expect(err).toEqual([`postrider: ${message} Try: postrider replay list`]);
  });
});
