import { expect, test } from "bun:test";
import { createGate } from "../../../src/store/postgres/gate.ts";

test("what is known is answered at once, also by a verb behind the gate", () => {
  const verbs = createGate().before({ known: () => 7 });
  expect(verbs.known()).toBe(7);
});

test("a gate is closed when all that was called before has been answered, and lets nothing through after it", async () => {
  const gate = createGate();
  const called = Promise.withResolvers<string>();
  const { read } = gate.before({ read: () => called.promise });
  const answer = read();
  let isClosed = false;
  const closing = gate.close().then(() => (isClosed = true));
  await expect(read()).rejects.toMatchObject({ code: "shutting_down" });
  expect(isClosed).toBe(false);
  called.resolve("answered");
  await closing;
  expect(await answer).toBe("answered");
});
