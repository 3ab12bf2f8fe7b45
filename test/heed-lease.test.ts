import { expect, test } from "bun:test";
import { createLeaseHeeder } from "../src/heed-lease.ts";
import { createLog } from "../src/lib/log.ts";

function setUp() {
  const done: string[] = [];
  const lines: string[] = [];
  const note = (act: string) => () => void done.push(act);
  const heeder = createLeaseHeeder({
    deliveries: { surrender: () => done.push("surrender") + 11, wake: note("wake"), look: note("look") },
    hub: { closeAll: note("close streams") },
    answers: { closeAll: note("close answers") },
    signers: { forgetAll: note("forget keys") },
    failingWebhooks: { forgetAll: note("forget what fails") },
    avoidNodes: note("avoid nodes"),
    log: createLog({ level: "info", format: "text", now: () => 0, out: (line) => void lines.push(line) }),
  });
  return { heeder, done, lines };
}

test("a node that was declared dead owns nothing, and lets go of all that others may have changed", () => {
  const { heeder, done } = setUp();
  heeder.lost();
  expect(done).toEqual(["surrender", "close streams", "close answers", "forget keys", "forget what fails"]);
});

test("a lease that goes on lets what waited for it start, and keeps it off those that share it", () => {
  const { heeder, done } = setUp();
  heeder.confirmed();
  expect(done).toEqual(["avoid nodes", "wake"]);
});

test("what is nobody's any more is looked for", () => {
  const { heeder, done } = setUp();
  heeder.unowned();
  expect(done).toEqual(["look"]);
});

test("a node that died is named in the log of the one that saw it, with what it leaves to the others", () => {
  const { heeder, lines } = setUp();
  heeder.rescued([{ incarnation: 7, name: "relay-2", deliveries: 12 }]);
  expect(lines).toEqual(["00:00:00  WARN node.died  node=relay-2  takenOver=12"]);
});

test("a node that is back says in its log how long it was away, and what it let go of", () => {
  const { heeder, lines } = setUp();
  heeder.lost();
  heeder.rejoined(22_400);
  expect(lines).toEqual(["00:00:00  WARN node.rejoined  seconds=22  letGo=12"]);
});
