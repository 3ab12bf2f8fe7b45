import { expect, test } from "bun:test";
import { createHeaderVault } from "../../src/delivery/own-headers.ts";
import { createVault } from "../../src/lib/vault.ts";

const headerVault = createHeaderVault(createVault(new Uint8Array(32).fill(1)));
const headers = [
  ["Authorization", "Bearer secret-of-the-shop"],
  ["X-Shop", "7"],
] as const;

test("headers that were sealed are what they were, in their order", () => {
  const sealed = headerVault.seal("t1", headers);
  expect(headerVault.open("t1", sealed)).toEqual(headers.map((header) => [...header]));
  expect(Buffer.from(sealed ?? []).toString("latin1")).not.toContain("secret-of-the-shop");
});

test("those of another account do not open", () => {
  const sealed = headerVault.seal("t1", headers);
  expect(() => headerVault.open("t2", sealed)).toThrow("The encrypted value of t2:webhook-headers cannot be decrypted");
});

test("none are nothing", () => {
  expect(headerVault.seal("t1", [])).toBeNull();
  expect(headerVault.open("t1", null)).toEqual([]);
});
