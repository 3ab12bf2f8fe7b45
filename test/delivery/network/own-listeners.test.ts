import { expect, test } from "bun:test";
import { listenersIn, listenersText, ownListenersOf } from "../../../src/delivery/network/own-listeners.ts";

test("listeners are told in a text, each once, and read from it", () => {
  const own = [
    ...ownListenersOf({ host: "::1", publicUrl: "https://[2001:db8::1]" }, 8080),
    { host: "::1", port: 8080 },
  ];
  const text = listenersText(own);
  expect(text).toBe("[::1]:8080,[2001:db8::1]:443");
  expect(listenersIn(text)).toEqual([
    { host: "[::1]", port: 8080 },
    { host: "[2001:db8::1]", port: 443 },
  ]);
});

test("of a node that does not listen yet, or tells what this one does not know, no more is taken than is known", () => {
  expect(listenersIn("")).toEqual([]);
  expect(listenersIn("unix:/run/postrider,:80,relay.example:443")).toEqual([{ host: "relay.example", port: 443 }]);
});
