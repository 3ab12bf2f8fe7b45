import { describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadClientConfig, loadConfig } from "../../src/config.ts";
import { fileVariable } from "../../src/given-settings.ts";
import { clientSettings, settings } from "../../src/settings.ts";
import { createAuthority, createSelfSigned } from "../support/certificates.ts";
import { load, refusalOf } from "./loaded-config.ts";

describe("a setting from a file", () => {
  const token = "scrape-4d1f9a7c2b60e85317aa";
  const variable = "POSTRIDER_METRICS_TOKEN_FILE";
  const fileWith = (content: string, mode = 0o600) => {
    const file = join(mkdtempSync(join(tmpdir(), "postrider-token-")), "token");
    writeFileSync(file, content, { mode });
    chmodSync(file, mode);
    return file;
  };

  test("is what is written there, without the end of the line", () => {
    for (const content of [token, `${token}\n`, `${token}\r\n`]) {
      expect(load({ [variable]: fileWith(content) }).metricsToken).toBe(token);
    }
    expect(load({ POSTRIDER_METRICS_TOKEN: token }).metricsToken).toBe(token);
  });

  test.each([...Object.values(settings), ...Object.values(clientSettings)].map((each) => [each.env, each] as const))(
    "%s may be in one if it is a secret or an address, and else not",
    (env, setting) => {
      const isAddress = /^\w+:\/\//.test(setting.example);
      expect(fileVariable(setting)).toBe(isAddress || setting.isSecret ? `${env}_FILE` : null);
      const given = { [`${env}_FILE`]: fileWith(setting.example) };
      const beside = env === settings.smtpUrl.env ? { [settings.mailFrom.env]: settings.mailFrom.example } : {};
      if (fileVariable(setting)) expect(() => load({ ...beside, ...given })).not.toThrow();
      else expect(refusalOf(given)).toStartWith(`${env}_FILE is not a setting. Try: `);
    },
  );

  test("is overridden by the flag, and cannot be beside the variable", () => {
    const file = fileWith("https://file.example");
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: file }).publicUrl).toBe("https://file.example");
    const flag = { "--public-url": "https://flag.example" };
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: file }, flag).publicUrl).toBe("https://flag.example");
    expect(refusalOf({ POSTRIDER_METRICS_TOKEN: token, [variable]: fileWith(token) })).toBe(
      "POSTRIDER_METRICS_TOKEN and POSTRIDER_METRICS_TOKEN_FILE are both set. Try: remove one of the two.",
    );
    expect(load({ POSTRIDER_METRICS_TOKEN: "", [variable]: fileWith(token) }).metricsToken).toBe(token);
  });

  test.each([["short"], [token.slice(0, 23)], ["with a space 0123456789abcdef"], ["ünïcode-0123456789abcdef"]])(
    "%p is no metrics token, and is not shown",
    (text) => {
      for (const refusal of [refusalOf({ POSTRIDER_METRICS_TOKEN: text }), refusalOf({ [variable]: fileWith(text) })]) {
        expect(refusal).toMatch(/^POSTRIDER_METRICS_TOKEN.* 24 to 512 printable .* Try: /);
        expect(refusal).not.toContain(text);
      }
    },
  );

  test.each([
    ["POSTRIDER_PUBLIC_URL", "https://ada:s3cr@t@relay.example"],
    ["POSTRIDER_PAYSTACK_URL", "https://ada:s3cr@t@pay.example"],
    ["POSTRIDER_BACKUP_URL", "s3://ada:s3cr@t@backups/x"],
  ])("a password in %s is refused, and not shown", (name, url) => {
    const refusal = refusalOf({ [name]: url });
    expect(refusal).toContain(url.replace("s3cr@t", "…"));
    expect(refusal).not.toMatch(/s3cr|@t/);
  });

  test("that is empty or missing stops the start and is named", () => {
    const file = fileWith("\n");
    expect(refusalOf({ [variable]: file })).toBe(
      `${variable} names a file that is empty: ${file}. Try: write the value of POSTRIDER_METRICS_TOKEN into it.`,
    );
    expect(refusalOf({ [variable]: "/nowhere" })).toStartWith(
      `${variable} names a file that cannot be read: /nowhere (`,
    );
    expect(load({ [variable]: "" }).metricsToken).toBeNull();
  });

  test("that others can read or change stops the start", () => {
    expect(refusalOf({ [variable]: fileWith(token, 0o640) })).toMatch(
      /accessible to other users.*0640.*Try: chmod 0600/,
    );
    expect(refusalOf({ [variable]: fileWith(token, 0o622) })).toMatch(/other users can change.*Try: chmod 0600/);
    const url = "https://relay.example.com";
    expect(load({ POSTRIDER_PUBLIC_URL_FILE: fileWith(url, 0o644) }).publicUrl).toBe(url);
    expect(refusalOf({ POSTRIDER_PUBLIC_URL_FILE: fileWith(url, 0o666) })).toMatch(/other users can change/);
  });

  test("that is a link is followed", () => {
    const file = fileWith(token);
    symlinkSync(file, `${file}.link`);
    expect(load({ [variable]: `${file}.link` }).metricsToken).toBe(token);
  });

  test("is one of a client's, too", () => {
    const env = { POSTRIDER_PASSWORD_FILE: fileWith("Corr3ct#Horse\n") };
    expect(loadClientConfig(env, new Map())).toMatchObject({ password: "Corr3ct#Horse" });
  });
});

describe("a file that a setting names", () => {
  test("that cannot be read stops the start and is named", () => {
    const start = (name: string) => `${name} names a file that cannot be read: /nowhere.pem. Try: `;
    expect(refusalOf({ POSTRIDER_EXTRA_CA_FILE: "/nowhere.pem" })).toStartWith(start("POSTRIDER_EXTRA_CA_FILE"));
    expect(refusalOf({ POSTRIDER_TLS_CERT: "/nowhere.pem", POSTRIDER_TLS_KEY: "/x" })).toStartWith(
      start("POSTRIDER_TLS_CERT"),
    );
  });
});

describe("certificate authorities", () => {
  const [one, other] = [createAuthority("one"), createAuthority("other")];
  const { key } = createSelfSigned({ hosts: ["localhost"] });
  const der = Buffer.from(one.cert.replace(/-----.+-----/g, ""), "base64");
  const fileWith = (contents: string | Buffer): string => {
    const file = join(mkdtempSync(join(tmpdir(), "ca-")), "ca.pem");
    writeFileSync(file, contents);
    return file;
  };

  test.each([
    ["nothing", "", "It contains no certificate in PEM"],
    ["another text", "relay-1\n", "It contains no certificate in PEM"],
    ["DER", der, "It contains no certificate in PEM"],
    ["a key", key, "It contains no certificate in PEM"],
    ["a label that TLS passes over", one.cert.replaceAll("CERT", "TRUSTED CERT"), "It contains no certificate in PEM"],
    ["one cut short", one.cert.slice(0, 200), "The certificate number 1 cannot be read"],
    ["a second one cut short", one.cert + other.cert.slice(0, 200), "The certificate number 2 cannot be read"],
    ["one without its end", one.cert.replace(/-----END.*\n/, "") + other.cert, "The certificate number 1 cannot"],
  ])("%s is refused", (_what, contents, fault) => {
    const file = fileWith(contents);
    const refusal = refusalOf({ POSTRIDER_EXTRA_CA_FILE: file });
    expect(refusal).toStartWith(`POSTRIDER_EXTRA_CA_FILE names a file that cannot be used: ${file} (${fault}`);
    expect(refusal).toEndWith(
      "Try: certificates in PEM; openssl x509 -inform der -in ca.der -out ca.pem converts one that is not.",
    );
  });

  test.each([
    ["one", one.cert],
    ["several, with comments", `# ours\n${one.cert}\n# theirs\n${other.cert}`],
    ["one after its key", key + one.cert],
    ["one with the older label", one.cert.replaceAll("CERT", "X509 CERT")],
    ["one of Windows", `\ufeff${one.cert.replaceAll("\n", "\r\n")}`],
  ])("%s: accepted as written", (_what, contents) => {
    expect(load({ POSTRIDER_EXTRA_CA_FILE: fileWith(contents) }).extraCa).toBe(contents);
  });
});

test.skipIf(process.platform === "win32").each([
  [0o600, []],
  [0o640, []],
  [
    0o644,
    [
      expect.stringMatching(
        /^POSTRIDER_TLS_KEY names a file that every user can read: .*key\.pem \(mode 0644\)\. Try: /,
      ),
    ],
  ],
])("a TLS key of mode %o is accepted, with a warning where everyone can read it", (mode, expected) => {
  const folder = mkdtempSync(join(tmpdir(), "tls-"));
  const { cert, key } = createSelfSigned({ hosts: ["localhost"] });
  const env = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
  writeFileSync(env.POSTRIDER_TLS_CERT, cert);
  writeFileSync(env.POSTRIDER_TLS_KEY, key);
  chmodSync(env.POSTRIDER_TLS_KEY, mode);
  const warnings: string[] = [];
  expect(loadConfig(env, new Map(), (message) => void warnings.push(message)).tls?.key).toBe(key);
  expect(warnings).toEqual(expected);
});
