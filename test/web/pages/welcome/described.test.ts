import { expect, test } from "bun:test";
import { describedOf } from "../../../../web/pages/welcome/described.ts";

const inbox = "http://localhost:8080/inbox/1f";
const hook = "https://shop.example/hook?key=secret";
const long = `https://shop.example/${"hooks/".repeat(100)}orders`;
const shortLong = `https://shop.example/…${long.slice(-38)}`;

test.each([
  ["DELIVERED", inbox, null, "to your inbox"],
  ["DELIVERED", hook, null, "to https://shop.example/hook?…"],
  ["PENDING", inbox, null, "for your inbox"],
  ["PENDING", inbox, `HTTP 503 from ${inbox}`, "for your inbox, after: HTTP 503 from the webhook"],
  ["PENDING", hook, `HTTP 503 from ${hook}`, "for https://shop.example/hook?…, after: HTTP 503 from the webhook"],
  ["PENDING", long, `HTTP 503 from ${long}`, `for ${shortLong}, after: HTTP 503 from the webhook`],
  ["FAILED", hook, `HTTP 404 from ${hook}`, "HTTP 404 from https://shop.example/hook?…"],
  ["FAILED", long, `HTTP 404 from ${long}`, `HTTP 404 from ${shortLong}`],
  [
    "FAILED",
    "",
    "No webhook was registered when the event arrived",
    "No webhook was registered when the event arrived",
  ],
])("%s: a delivery to %.20s… that failed with %j is described", (state, targetWebhook, errorReason, words) => {
  expect(describedOf({ state, targetWebhook, errorReason }, inbox)).toBe(words);
});
