import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { loadConfig } from "../../src/config.ts";
import { settings } from "../../src/settings.ts";
import { root } from "./documents.ts";

interface Service {
  environment?: Record<string, string>;
  networks?: Record<string, { ipv4_address?: string }>;
  secrets?: string[];
  tmpfs?: string[];
  volumes?: string[];
}

interface Compose {
  services: Record<string, Service>;
  secrets: Record<string, { file: string }>;
}

const fileAt = (name: string) => readFileSync(join(root, "docs/compose", name), "utf8");
const compose = Bun.YAML.parse(fileAt("compose.yml")) as Compose;
const caddyfile = fileAt("Caddyfile");
const relays = Object.entries(compose.services).filter(([name]) => name.startsWith("relay-"));

/** As compose fills it in: what is needed with a word, the rest with its default. */
const filledIn = (text: string) =>
  text.replaceAll(/\$\{\w+:\?[^}]*\}/g, "secret").replaceAll(/\$\{\w+:-([^}]*)\}/g, "$1");
const environmentOf = ({ environment = {} }: Service) =>
  Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, filledIn(value)]));

describe("the servers of docs/compose/compose.yml", () => {
  test("are two or more, with names of their own", () => {
    expect(relays.length).toBeGreaterThanOrEqual(2);
    expect(relays.map(([, service]) => environmentOf(service).POSTRIDER_NODE_NAME)).toEqual(
      relays.map(([name]) => name),
    );
  });

  test("differ in nothing else", () => {
    const [first, ...others] = relays.map(([, { environment, ...rest }]) => ({
      ...rest,
      environment: { ...environment, POSTRIDER_NODE_NAME: "" },
    }));
    for (const other of others) expect(other).toEqual(first as typeof other);
  });

  test.each(relays)("%s has settings that there are, and starts with them", (_, service) => {
    const known: readonly string[] = Object.values(settings).map(({ env }) => env);
    const environment = environmentOf(service);
    expect(Object.keys(environment).filter((name) => !known.includes(name))).toEqual([]);
    const config = loadConfig(environment, new Map());
    expect(config).toMatchObject({ localMode: false, publicUrl: "https://relay.example.com" });
    expect(config.databaseUrl).toContain("@postgres:5432/");
    expect(service.secrets).toEqual([basename(config.masterKeyFile ?? "")]);
    expect(Object.keys(compose.secrets)).toEqual([basename(config.masterKeyFile ?? "")]);
    expect(service.tmpfs?.map((mount) => mount.split(":")[0])).toEqual([config.dataDir]);
    const { ipv4_address: proxy = "" } = compose.services.caddy?.networks?.relay ?? {};
    expect(environment.POSTRIDER_TRUSTED_PROXIES).toBe(`${proxy}/32`);
  });

  test("all get requests from Caddy, as long as they are ready", () => {
    const port = environmentOf(relays[0]?.[1] ?? {}).POSTRIDER_PORT;
    expect(caddyfile).toContain(`reverse_proxy ${relays.map(([name]) => `${name}:${port}`).join(" ")} {`);
    expect(caddyfile).toContain("health_uri /readyz");
    expect(caddyfile).toContain("flush_interval -1");
  });

  test("share the database that the same file starts", () => {
    const { POSTGRES_USER: user, POSTGRES_DB: database } = compose.services.postgres?.environment ?? {};
    for (const [, service] of relays) {
      const url = new URL(environmentOf(service).POSTRIDER_DATABASE_URL ?? "");
      expect([url.username, url.pathname]).toEqual([user as string, `/${database}`]);
    }
  });
});
