import { expect, test } from "bun:test";
import { proxyVariableFor } from "../../src/cli/client/proxy-variable.ts";

const proxy = "http://proxy.example:3128";

test.each<[url: string, env: Record<string, string>, name: string | null]>([
  ["https://relay.example.com", {}, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy }, "HTTPS_PROXY"],
  ["https://relay.example.com", { https_proxy: proxy }, "https_proxy"],
  ["https://relay.example.com", { HTTP_PROXY: proxy }, null],
  ["http://relay.example.com", { HTTP_PROXY: proxy }, "HTTP_PROXY"],
  ["https://relay.example.com", { HTTPS_PROXY: "" }, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy, NO_PROXY: "*" }, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy, NO_PROXY: "a.test, relay.example.com" }, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy, no_proxy: ".example.com" }, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy, NO_PROXY: "example.com" }, null],
  ["https://relay.example.com:8443", { HTTPS_PROXY: proxy, NO_PROXY: "relay.example.com:8443" }, null],
  ["https://relay.example.com", { HTTPS_PROXY: proxy, NO_PROXY: "other.example.com,:8443" }, "HTTPS_PROXY"],
])("%s with %j goes through the proxy of %p", (url, env, name) => {
  expect(proxyVariableFor(url, env)).toBe(name);
});
