import { describe, expect, test } from "bun:test";
import * as v from "valibot";
import type { Tenant } from "../../src/domain/tenant.ts";
import {
  type Answers,
  answerRoomBytes,
  answerRoomOfOneBytes,
  type Chunks,
  createAnswers,
  readerPatienceMs,
} from "../../src/http/answers.ts";
import { createBodyRoom } from "../../src/http/body-room.ts";
import { endpoint, ok, type Reply } from "../../src/http/endpoint.ts";
import { listReply } from "../../src/http/list-reply.ts";
import { createResponder } from "../../src/http/respond.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const MiB = 2 ** 20;

function makeAnswers(largestEntryBytes = MiB / 2) {
  const clock = createFakeClock();
  const log: string[] = [];
  const answers = createAnswers({
    clock,
    log: createLog({ level: "debug", format: "json", now: () => 0, out: (line) => void log.push(line) }),
    largestEntryBytes,
  });
  return { answers, clock, log };
}

/** So many parts of a byte each; `made` counts those that were asked for. */
function parts(count: number, made = { count: 0, ended: false }): { chunks: Chunks; made: typeof made } {
  async function* make(): Chunks {
    try {
      for (; made.count < count; ) {
        made.count += 1;
        yield Uint8Array.of(made.count);
      }
    } finally {
      made.ended = true;
    }
  }
  return { chunks: make(), made };
}

const codeOf = (act: () => unknown) => {
  try {
    act();
  } catch (error) {
    return (error as { code?: string }).code;
  }
};

/** With entries of half a MiB an answer counts for 2 MiB. */
const fill = (answers: Answers, owner: string, count: number) =>
  Array.from({ length: count }, () => answers.begin(owner, parts(1).chunks).getReader());

describe("a large answer", () => {
  test("makes its next part when the last one was taken, and no sooner", async () => {
    const { answers } = makeAnswers();
    const { chunks, made } = parts(3);
    const reader = answers.begin("ada", chunks).getReader();
    expect(made.count).toBe(0);
    expect((await reader.read()).value).toEqual(Uint8Array.of(1));
    await Bun.sleep(5);
    expect(made.count).toBe(1);
    await reader.read();
    await reader.read();
    expect((await reader.read()).done).toBe(true);
    expect([answers.underWay, made.ended]).toEqual([0, true]);
  });

  test("with a part longer than it counts for is broken off if others have taken the room", async () => {
    const { answers, log } = makeAnswers();
    const long = new Uint8Array(8 * MiB);
    async function* make(): Chunks {
      yield long.slice();
    }
    const first = answers.begin("ada", make()).getReader();
    expect((await first.read()).value).toHaveLength(long.length);
    const others = [make(), make()].map((chunks) => answers.begin("ada", chunks).getReader());
    expect((await others[0]?.read())?.value).toHaveLength(long.length);
    fill(answers, "ada", 3);
    expect(await others[1]?.read().catch((error: Error) => error.message)).toMatch(/no room/);
    expect(log.map((line) => JSON.parse(line))).toMatchObject([{ event: "answer.cut_off", bytes: long.length }]);
    expect((await answers.begin("eve", make()).getReader().read()).value).toHaveLength(long.length);
  });

  test("whose reader takes nothing for 30 s is broken off, and what it had is free again", async () => {
    const { answers, clock, log } = makeAnswers();
    const { chunks, made } = parts(3);
    const reader = answers.begin("ada", chunks).getReader();
    await reader.read();
    clock.advance(readerPatienceMs - 1);
    expect((await reader.read()).done).toBe(false);
    clock.advance(readerPatienceMs - 1);
    expect(answers.underWay).toBe(1);
    clock.advance(1);
    expect(answers.underWay).toBe(0);
    expect(await reader.read().catch((error: Error) => error.message)).toBe("The client has stopped reading");
    await Bun.sleep(0);
    expect(made.ended).toBe(true);
    expect(log.map((line) => JSON.parse(line).event)).toEqual(["answer.cut_off"]);
    expect(clock.timers).toBe(0);
  });

  test.each([
    ["its reader leaves", (_: Answers, reader: { cancel(): Promise<void> }) => void reader.cancel()],
    ["its account is deleted", (answers: Answers) => answers.closeTenant("ada")],
    ["the server stops", (answers: Answers) => answers.closeAll()],
  ])("is forgotten when %s", async (_, end) => {
    const { answers, clock } = makeAnswers();
    const { chunks, made } = parts(3);
    const reader = answers.begin("ada", chunks).getReader();
    answers.begin("bob", parts(1).chunks);
    await reader.read();
    end(answers, reader);
    await reader.closed.catch(() => {});
    await Bun.sleep(0);
    expect(made).toEqual({ count: 1, ended: true });
    answers.closeAll();
    expect([answers.underWay, clock.timers]).toEqual([0, 0]);
    // All that it had counted for is there again.
    expect(codeOf(() => fill(answers, "ada", answerRoomOfOneBytes / (2 * MiB)))).toBeUndefined();
  });

  test("that cannot be read on is broken off, and the log says why", async () => {
    const { answers, log } = makeAnswers();
    async function* broken(): Chunks {
      yield Uint8Array.of(1);
      throw new Error("disk gone");
    }
    const reader = answers.begin("ada", broken()).getReader();
    await reader.read();
    expect(await reader.read().catch((error: Error) => error.message)).toBe("The rest of the response cannot be read");
    expect(answers.underWay).toBe(0);
    expect(log.map((line) => JSON.parse(line))).toMatchObject([{ level: "error", event: "answer.broken_off" }]);
  });
});

describe("what an answer counts for", () => {
  const MiBs = (count: number) => "x".repeat(count * MiB);
  const entry = (bytes: number) => new Uint8Array(bytes).fill(0x20);
  /** A list whose first step has these entries; there are no more of them unless it goes on. */
  const list = (entries: Uint8Array[], goesOn = false) =>
    listReply({
      ...{ before: "[", write: (bytes: Uint8Array) => [bytes], after: "]" },
      entries: { next: async () => entries.splice(0), ended: !goesOn },
    });

  /** How many answers an account may have under way, none of which is read, and what the next one is told. */
  async function roomFor(handle: () => Reply | Promise<Reply>) {
    const { answers } = makeAnswers();
    const get = endpoint(
      {
        ...{ method: "GET", path: "/x", tag: "Events", summary: "Answer", access: "session" },
        responses: { 200: { description: "Ok.", schema: v.object({}), example: {} } },
      },
      handle,
    );
    const respond = createResponder({
      authenticate: () => ({ tenant: { id: "ada" } as Tenant }),
      clientAddress: (address) => address,
      bodyRoom: createBodyRoom(),
      answers,
      log: createLog({ level: "error", format: "json", now: () => 0, out() {} }),
    });
    for (;;) {
      const call = { request: new Request("http://localhost/x"), params: {}, socketAddress: () => "192.0.2.7" };
      const response = await respond(get, call);
      if (response.status !== 200) return { count: answers.underWay, code: Object(await response.json()).code };
      if (answers.underWay === 0) return { count: "any", text: (await response.text()).length };
    }
  }

  test.each<[string, () => Reply | Promise<Reply>, number]>([
    ["a text of 100 KiB: a step", () => ok({ text: "x".repeat(100 * 1024) }), 12],
    ["a text of 5 MiB: all of it", () => ok({ text: MiBs(5) }), 4],
    ["a text with other characters: its bytes", () => ok({ text: "€".repeat(3 * MiB) }), 2],
    ["a list that goes on: a step", () => list([entry(100)], true), 12],
    ["a list of one entry of 5 MiB: that entry", () => list([entry(5 * MiB)]), 4],
    ["a list that begins with one: that entry", () => list([entry(5 * MiB)], true), 4],
  ])("%s", async (_, handle, count) => {
    expect(await roomFor(handle)).toEqual({ count, code: "too_many_answers" });
  });

  test("a list of small entries: nothing, since it goes out whole", async () => {
    expect(await roomFor(() => list([entry(100), entry(100)]))).toEqual({ count: "any", text: 203 });
  });

  test("a list of one large entry is the same text in parts", async () => {
    const { chunks } = await list([entry(100_000)]);
    expect(Buffer.concat(await Array.fromAsync(chunks ?? [])).toString()).toBe(`[${" ".repeat(100_000)}]`);
  });
});

describe("the room of answers", () => {
  test("is 64 MiB, and 24 MiB for one account", () => {
    expect([answerRoomBytes, answerRoomOfOneBytes]).toEqual([64 * MiB, 24 * MiB]);
  });

  test("has an end for one account, which leaves room for another one", () => {
    const { answers } = makeAnswers();
    fill(answers, "ada", 12);
    expect(codeOf(() => fill(answers, "ada", 1))).toBe("too_many_answers");
    expect(codeOf(() => fill(answers, "bob", 12))).toBeUndefined();
  });

  test("has an end for all together", () => {
    const { answers } = makeAnswers();
    for (const owner of ["ada", "bob", "eve"]) fill(answers, owner, 10);
    fill(answers, "dan", 2);
    expect(codeOf(() => fill(answers, "dan", 1))).toBe("too_many_answers");
    expect(answers.underWay).toBe(32);
  });
});
