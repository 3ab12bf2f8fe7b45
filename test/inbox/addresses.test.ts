import { describe, expect, test } from "bun:test";
import type { Outcome } from "../../src/delivery/network/transport.ts";
import { createInboxAddresses } from "../../src/inbox/addresses.ts";
import { createInboxSender } from "../../src/inbox/sender.ts";
import type { Interruption } from "../../src/lib/interruption.ts";
import { dueDelivery, signerMaterial } from "../support/due-delivery.ts";

const baseUrl = () => "https://relay.example.com";
const addresses = createInboxAddresses({ secret: new Uint8Array(32).fill(1), baseUrl });
const ada = "t0000000000001";
const own = addresses.urlOf(ada);

describe("the address of an inbox", () => {
  test("is a token of 128 bits below the public URL, the same each time", () => {
    expect(own).toMatch(/^https:\/\/relay\.example\.com\/inbox\/[0-9a-hjkmnp-tv-z]{26}$/);
    expect(addresses.urlOf(ada)).toBe(own);
    expect(createInboxAddresses({ secret: new Uint8Array(32).fill(1), baseUrl }).urlOf(ada)).toBe(own);
  });

  test("is another one for every account and every secret", () => {
    const urls = Array.from({ length: 1000 }, (_, i) => addresses.urlOf(`t${i}`));
    urls.push(createInboxAddresses({ secret: new Uint8Array(32).fill(2), baseUrl }).urlOf("t0"));
    expect(new Set(urls).size).toBe(1001);
  });

  test("follows the public URL", () => {
    let url = "";
    const late = createInboxAddresses({ secret: new Uint8Array(32), baseUrl: () => url });
    url = "http://localhost:8080";
    expect(late.urlOf(ada)).toStartWith("http://localhost:8080/inbox/");
    expect(late.isInboxOf(ada, late.urlOf(ada))).toBe(true);
  });
});

const others: Record<string, string> = {
  "another account's": addresses.urlOf("t0000000000002"),
  "one with a slash": `${own}/`,
  "one with a query": `${own}?`,
  "one with a fragment": `${own}#`,
  "one in capitals": own.toUpperCase(),
  "a token in capitals": baseUrl() + own.slice(baseUrl().length).toUpperCase(),
  "one that is cut": own.slice(0, -1),
  "one with a port": own.replace(".com", ".com:443"),
  "one over http": own.replace("https", "http"),
  "one with a dot": own.replace("/inbox/", "/./inbox/"),
  "one with an escape": own.replace("/inbox/", "/inbo%78/"),
  "the public URL": baseUrl(),
  "a host that begins like it": own.replace(".com/", ".com.evil.example/"),
  nothing: "",
};

test.each(Object.entries(others))("%s is not the inbox", (_, url) => {
  expect(addresses.isInboxOf(ada, url)).toBe(false);
  expect(addresses.isInboxOf(ada, own)).toBe(true);
});

describe("the sender", () => {
  const outcome = (cause: "interrupted" | "timeout"): Outcome => ({ kind: "no-response", cause, durationMs: 0 });

  function setUp() {
    const calls: string[] = [];
    const signals: (Interruption | undefined)[] = [];
    const sender = createInboxSender({
      addresses,
      inbox: {
        async receive({ url }, signal) {
          calls.push(`inbox ${url}`);
          signals.push(signal);
          return outcome("timeout");
        },
        close: () => void calls.push("inbox closed"),
      },
      network: {
        async send({ delivery }, signal) {
          calls.push(`network ${delivery.url}`);
          signals.push(signal);
          return outcome("interrupted");
        },
        close: () => void calls.push("network closed"),
      },
    });
    return { sender, calls, signals };
  }

  const material = signerMaterial();
  const order = (url: string, tenantId = ada) => ({
    delivery: dueDelivery({ url, tenantId }),
    material,
    headers: [],
    now: 0,
  });

  test("hands what goes to the account's own inbox to the inbox, and the rest to the network", async () => {
    const { sender, calls, signals } = setUp();
    const { signal } = new AbortController();
    expect(await sender.send(order(own), signal)).toEqual(outcome("timeout"));
    expect(await sender.send(order(own, "t0000000000002"), signal)).toEqual(outcome("interrupted"));
    for (const url of Object.values(others)) await sender.send(order(url));
    expect(calls).toEqual([`inbox ${own}`, `network ${own}`, ...Object.values(others).map((url) => `network ${url}`)]);
    expect(signals.slice(0, 2)).toEqual([signal, signal]);
  });

  test("closes both", () => {
    const { sender, calls } = setUp();
    sender.close();
    expect(calls.toSorted()).toEqual(["inbox closed", "network closed"]);
  });
});
