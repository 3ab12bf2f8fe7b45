import { describe, expect, test } from "bun:test";
import { loadClientConfig } from "../../src/config.ts";
import { clientSettings } from "../../src/settings.ts";
import { load } from "./loaded-config.ts";

describe("the settings of clients", () => {
  const loadClient = (env: Record<string, string> = {}, flags: Record<string, string> = {}) =>
    loadClientConfig(env, new Map(Object.entries(flags)));

  test("have the documented defaults", () => {
    expect(loadClient()).toEqual({
      url: "http://localhost:8080",
      login: null,
      password: null,
      token: null,
      apiKey: null,
      typedLogin: null,
    });
  });

  test.each(Object.values(clientSettings).map((setting) => [setting.env, setting] as const))(
    "%s has a valid default and example, and stops no server",
    (env, { default: byDefault, example, parse }) => {
      expect(parse(byDefault)).not.toBeNull();
      expect(parse(example)).not.toBeNull();
      expect(load({ [env]: "whatever" })).toEqual(load());
    },
  );

  test("a server's settings stop no client, and a slip of the hand does", () => {
    expect(loadClient({ POSTRIDER_PORT: "8081", POSTRIDER_SIGNUP: "closed" })).toEqual(loadClient());
    expect(() => loadClient({ POSTRIDER_PASWORD: "x" })).toThrow("POSTRIDER_PASWORD is not a setting.");
  });

  test("a flag stands above the environment", () => {
    const env = { POSTRIDER_URL: "https://a.example", POSTRIDER_LOGIN: "t1" };
    expect(loadClient(env, { "--server": "https://b.example/", "--login": "t2" })).toMatchObject({
      url: "https://b.example",
      login: "t2",
    });
  });

  test("a key that is not valid is not shown", () => {
    expect(() => loadClient({ POSTRIDER_API_KEY: "sk_live_secret" })).toThrow(
      "POSTRIDER_API_KEY must be an API key (svc_sk_…). Try: POSTRIDER_API_KEY=svc_sk_",
    );
  });

  test.each(["eyJh…", "Bearer eyJh", "eyJh\n.e30"])("a token that no header can carry is refused: %j", (token) => {
    expect(() => loadClient({ POSTRIDER_TOKEN: token })).toThrow(
      "POSTRIDER_TOKEN must be a session token, as a login returns it. Try: POSTRIDER_TOKEN=eyJ",
    );
  });
});
