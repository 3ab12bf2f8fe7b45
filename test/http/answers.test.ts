import { describe, expect, test } from "bun:test";
import {
  type Answers,
  answerRoomBytes,
  answerRoomOfOneBytes,
  type Chunks,
  createAnswers,
  readerPatienceMs,
} from "../../src/http/answers.ts";
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
