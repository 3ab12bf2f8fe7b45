import { describe, expect, test } from "bun:test";
import { type AddressPolicyOptions, createAddressPolicy } from "../../../src/delivery/network/address.ts";
import { prefixesIn } from "../../../src/delivery/network/nat64.ts";
import { nowhere, type Surroundings } from "../../../src/delivery/network/surroundings.ts";
import { StartupError } from "../../../src/domain/errors.ts";

const policyWith = (options: Partial<AddressPolicyOptions> = {}) =>
  createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [], ...options });

const publicMode = policyWith();
const localMode = policyWith({ localMode: true });

const ruleFor = (url: string, policy = publicMode) => {
  const verdict = policy.checkUrl(url);
  return verdict.ok ? "allowed" : verdict.rule;
};
const ruleForAddress = (address: string, target = "https://receiver.example/", policy = publicMode) => {
  const verdict = policy.checkAddress(address, new URL(target));
  return verdict.ok ? "allowed" : verdict.rule;
};

describe("a webhook URL in public mode", () => {
  test.each([
    ["https://example.com"],
    ["https://example.com/"],
    ["https://example.com./hook"],
    ["https://Hooks.Example.COM/a/b?c=d&e=%20#".slice(0, -1)],
    ["HTTPS://example.com/hook"], // RFC 3986, section 3.1
    ["https://example.com:8443/hook"],
    ["https://example.com:443/hook"],
    ["https://example.com/path/with/@/at?and=@"],
    ["https://1.1.1.1/"],
    ["https://[2606:4700:4700::1111]:8443/"],
    ["https://münchen.example/"],
    ["https://xn--mnchen-3ya.example/"],
    ["https://r3---sn-a.example.com/"],
    ["https://127.0.0.1.nip.io/"], // a name like others: the addresses it resolves to are judged when it is dialled
    [`https://${"a".repeat(63)}.example/`],
    [`https://${`${"a".repeat(61)}.`.repeat(4)}abcde/`],
    [`https://example.com/${"a".repeat(2028)}`],
    ["https://mylocal.example/"],
    ["https://notlocalhost.example/"],
  ])("may be %s", (url) => {
    expect(ruleFor(url)).toBe("allowed");
  });

  test("is handed over as it was parsed", () => {
    const verdict = publicMode.checkUrl("https://example.com:8443/a?b");
    expect(verdict.ok && verdict.url.href).toBe("https://example.com:8443/a?b");
  });

  // Hazards, section 1.2: spellings that the parser turns into an address.
  test.each([
    ["2130706433"],
    ["0x7f000001"],
    ["0x7f.1"],
    ["0177.0.0.1"],
    ["127.1"],
    ["127.0.1"],
    ["017700000001"],
    ["00000177.1"],
    ["①②⑦.⓪.⓪.①"],
    ["127。0。0。1"],
    ["１２７.０.０.１"],
    ["%31%32%37.0.0.1"],
    ["127.0.0.1."],
    ["0"],
    ["0300.0250.0.1"],
    ["3232235521"],
    ["169.254.169.254"],
    ["0xa9fea9fe"],
    ["[::1]"],
    ["[::]"],
    ["[::ffff:127.0.0.1]"],
    ["[::ffff:7f00:1]"],
    ["[0:0:0:0:0:ffff:7f00:0001]"],
    ["[64:ff9b::127.0.0.1]"],
    ["[::127.0.0.1]"],
    ["[fd00:ec2::254]"],
  ])("may not be a spelling of an inner address: %s", (host) => {
    expect(ruleFor(`https://${host}/`)).toBe("address_not_public");
    expect(ruleFor(`https://${host}:8443/latest/meta-data`)).toBe("address_not_public");
  });

  test("may be a spelling of a public address", () => {
    expect(ruleFor("https://0x01.0x1/")).toBe("allowed"); // 1.0.0.1
  });

  test.each([
    ["https://user:pass@example.com/", "url_credentials"],
    ["https://user@example.com/", "url_credentials"],
    ["https://:@example.com/", "url_credentials"],
    ["https://@example.com/", "url_credentials"],
    ["https://example.com@127.0.0.1/", "url_credentials"],
    ["https://127.0.0.1@example.com/", "url_credentials"],
    ["https://127.0.0.1\\@example.com/", "url_backslash"],
    ["https:\\\\example.com/", "url_backslash"],
    ["https:/\\127.0.0.1/", "url_backslash"],
    ["https://ex\tample.com/", "url_control_character"],
    ["https://ex\nample.com/", "url_control_character"],
    ["https://example.com/\r\nX: y", "url_control_character"],
    [" https://example.com/", "url_control_character"],
    ["https://example.com/ ", "url_control_character"],
    ["https://example.com/a b", "url_control_character"],
    ["https://example.com/\0", "url_control_character"],
    ["https://example.com/\x7f", "url_control_character"],
    ["https:127.0.0.1/", "url_scheme"],
    ["https:/127.0.0.1/", "url_scheme"],
    ["https:///127.0.0.1/", "url_scheme"],
    ["https:////example.com/", "url_scheme"],
    ["HTTPS:///127.0.0.1/", "url_scheme"],
    ["HTTPS://user@example.com/", "url_credentials"],
    ["HTTPS://127.0.0.1/", "address_not_public"],
    ["HTTP://example.com/", "url_scheme"],
    ["FTP://example.com/", "url_scheme"],
    ["//example.com/", "url_scheme"],
    ["//127.0.0.1", "url_scheme"],
    ["example.com/hook", "url_scheme"],
    ["/hook", "url_scheme"],
    ["", "url_scheme"],
    ["ftp://example.com/", "url_scheme"],
    ["wss://example.com/", "url_scheme"],
    ["file:///etc/passwd", "url_scheme"],
    ["javascript:alert(1)", "url_scheme"],
    ["data:text/plain,x", "url_scheme"],
    ["http://example.com/", "url_scheme"],
    ["http://localhost/", "url_scheme"],
    ["http://1.1.1.1/", "http_not_allowed"],
    ["http://127.0.0.1/", "http_not_allowed"],
    ["https://example.com/#fragment", "url_fragment"],
    ["https://example.com/#", "url_fragment"],
    [`https://example.com/${"a".repeat(2029)}`, "url_too_long"],
    ["https://", "url_invalid"],
    ["https://[fe80::1%25eth0]/", "url_invalid"],
    ["https://127.0.0.1%00.example.com/", "url_invalid"],
    ["https://256.256.256.256/", "url_invalid"],
    ["https://1.2.3.4.5/", "url_invalid"],
    ["https://0xffffffffff/", "url_invalid"],
    ["https://xn--localhost/", "url_invalid"],
    ["https://example.com:65536/", "url_invalid"],
    ["https://example.com:port/", "url_invalid"],
    ["https://[::1/", "url_invalid"],
    ["https://[v1.a]/", "url_invalid"],
    ["https://./", "host_malformed"],
    ["https://..../", "host_malformed"],
    ["https://example..com/", "host_malformed"],
    ["https://example.com../", "host_malformed"],
    ["https://.example.com/", "host_malformed"],
    ["https://-example.com/", "host_malformed"],
    ["https://example-.com/", "host_malformed"],
    ["https://ex_ample.com/", "host_malformed"],
    ["https://example.com,evil.example/", "host_malformed"],
    ["https://ex*mple.com/", "host_malformed"],
    [`https://${"a".repeat(64)}.example/`, "host_malformed"],
    [`https://${`${"a".repeat(61)}.`.repeat(4)}abcdef/`, "host_malformed"],
    ["https://metadata/", "host_single_label"],
    ["https://receiver/", "host_single_label"],
    ["https://localhost/", "host_single_label"],
    ["https://localhost./", "host_single_label"],
    ["https://LOCALHOST/", "host_single_label"],
    ["https://ⓛocalhost/", "host_single_label"],
    ["https://lo\u00adcalhost/", "host_single_label"],
    ["https://foo.localhost/", "host_special_use"],
    ["https://foo.localhost./", "host_special_use"],
    ["https://metadata.google.internal/", "host_special_use"],
    ["https://printer.local/", "host_special_use"],
    ["https://nas.home.arpa/", "host_special_use"],
    ["https://nas.lan/", "host_special_use"],
    ["https://wiki.intranet/", "host_special_use"],
    ["https://wiki.corp/", "host_special_use"],
    ["https://nas.home/", "host_special_use"],
    ["https://expyuzz4wqqyqhjn.onion/", "host_special_use"],
    ["https://a.invalid/", "host_special_use"],
    ["https://a.test/", "host_special_use"],
    ["https://example.com:0/", "port_blocked"],
    ["https://example.com:22/", "port_blocked"],
    ["https://example.com:25/", "port_blocked"],
    ["https://example.com:6000/", "port_blocked"],
    ["https://1.1.1.1:25/", "port_blocked"],
  ])("may not be %j: %s", (url, rule) => {
    expect(ruleFor(url)).toBe(rule);
  });

  test("is refused in words that follow the name of a field and never repeat what was sent", () => {
    for (const url of ["http://10.1.2.3/", "https://10.1.2.3/", "https://secret.internal/", "https://a:b@c.example/"]) {
      const verdict = publicMode.checkUrl(url);
      expect(verdict).toMatchObject({ ok: false, message: expect.stringMatching(/^must /) });
      expect(JSON.stringify(verdict)).not.toMatch(/10\.1\.2\.3|secret|c\.example/);
    }
  });
});

describe("in local mode", () => {
  test.each([
    ["http://localhost:9000/hook"],
    ["https://localhost:9000/hook"],
    ["http://localhost/"],
    ["HTTP://LocalHost:9000/hook"],
    ["http://127.0.0.1:9000/hook"],
    ["https://127.0.0.1:9000/hook"],
    ["http://127.1.2.3:9000/hook"],
    ["http://127.1:9000/"],
    ["http://[::1]:9000/hook"],
    ["https://[::1]:9000/hook"],
    ["https://example.com/"],
  ])("a webhook may be %s", (url) => {
    expect(ruleFor(url, localMode)).toBe("allowed");
  });

  test.each([
    ["http://example.com/", "url_scheme"],
    ["http://1.1.1.1/", "http_not_allowed"],
    ["http://10.0.0.1/", "http_not_allowed"],
    ["https://10.0.0.1/", "address_not_public"],
    ["http://0.0.0.0:9000/", "http_not_allowed"],
    ["https://0.0.0.0:9000/", "address_not_public"],
    ["http://[::]:9000/", "http_not_allowed"],
    ["http://[::ffff:127.0.0.1]:9000/", "http_not_allowed"],
    ["https://[::ffff:127.0.0.1]:9000/", "address_not_public"],
    ["http://localhost.:9000/", "url_scheme"],
    ["https://foo.localhost:9000/", "host_special_use"],
    ["http://foo.localhost:9000/", "url_scheme"],
    ["http://receiver:9000/", "url_scheme"],
    ["https://receiver:9000/", "host_single_label"],
    ["http://localhost:22/", "port_blocked"],
  ])("a webhook may not be %s: %s", (url, rule) => {
    expect(ruleFor(url, localMode)).toBe(rule);
  });

  test.each([
    ["127.0.0.1", "http://localhost:9000/", "allowed"],
    ["::1", "http://localhost:9000/", "allowed"],
    ["::1", "https://localhost:9000/", "allowed"],
    ["127.0.0.1", "http://127.0.0.1:9000/", "allowed"],
    ["10.0.0.1", "http://localhost:9000/", "address_not_public"],
    ["1.1.1.1", "http://localhost:9000/", "address_not_public"],
    ["127.0.0.1", "https://rebound.example/", "address_not_public"],
    ["::1", "https://rebound.example/", "address_not_public"],
    ["1.1.1.1", "https://rebound.example/", "allowed"],
  ])("%s may be dialled for %s: %s", (address, target, rule) => {
    expect(ruleForAddress(address, target, localMode)).toBe(rule);
  });
});

describe("with ranges that the operator allows", () => {
  const lan = policyWith({ allowTargets: ["10.0.0.0/8", "192.168.1.20", "fd00::/8"] });

  test.each([
    ["http://10.1.2.3:8080/hook"],
    ["https://10.1.2.3/hook"],
    ["http://192.168.1.20/"],
    ["http://[fd12::1]:8080/"],
    ["http://receiver:8080/hook"],
    ["https://receiver/hook"],
    ["http://receiver.lan/"],
    ["http://receiver.svc.cluster.local/"],
    ["http://localhost:9000/"],
    ["http://receiver.example/"],
    ["https://example.com/"],
    ["https://1.1.1.1/"],
  ])("a webhook may be %s", (url) => {
    expect(ruleFor(url, lan)).toBe("allowed");
  });

  test.each([
    ["http://11.0.0.1/", "http_not_allowed"],
    ["http://1.1.1.1/", "http_not_allowed"],
    ["https://192.168.1.21/", "address_not_public"],
    ["https://127.0.0.1/", "address_not_public"],
    ["http://127.0.0.1/", "http_not_allowed"],
    ["http://169.254.169.254/", "address_not_public"],
    ["https://[fd00:ec2::254]/", "address_not_public"],
    ["http://10.1.2.3:22/", "port_blocked"],
    ["ftp://10.1.2.3/", "url_scheme"],
    ["http://a.onion/", "host_special_use"],
    ["http://a.invalid/", "host_special_use"],
    ["http://re_ceiver/", "host_malformed"],
  ])("a webhook may not be %s: %s", (url, rule) => {
    expect(ruleFor(url, lan)).toBe(rule);
  });

  test.each([
    ["10.1.2.3", "http://receiver/", "allowed"],
    ["10.1.2.3", "https://receiver/", "allowed"],
    ["fdff::1", "http://receiver/", "allowed"],
    ["1.1.1.1", "https://receiver.example/", "allowed"],
    ["1.1.1.1", "http://receiver.example/", "http_not_allowed"],
    ["127.0.0.1", "http://localhost:9000/", "http_not_allowed"],
    ["127.0.0.1", "https://localhost:9000/", "address_not_public"],
    ["172.16.0.1", "https://receiver/", "address_not_public"],
    ["169.254.169.254", "http://receiver/", "address_not_public"],
    ["fd00:ec2::254", "http://receiver/", "address_not_public"],
    ["::ffff:10.1.2.3", "http://receiver/", "http_not_allowed"],
  ])("%s may be dialled for %s: %s", (address, target, rule) => {
    expect(ruleForAddress(address, target, lan)).toBe(rule);
  });

  test.each([
    ["169.254.169.254"],
    ["169.254.0.0"],
    ["fd00:ec2::254"],
    ["::ffff:169.254.169.254"],
    ["::169.254.169.254"],
    ["::ffff:0:169.254.169.254"],
    ["64:ff9b::169.254.169.254"],
    ["64:ff9b:1::169.254.169.254"],
    ["2002:a9fe:a9fe::1"],
  ])("metadata stays closed although everything is allowed: %s", (address) => {
    const everything = policyWith({ allowTargets: ["0.0.0.0/0", "::/0"] });
    expect(ruleForAddress(address, "http://receiver/", everything)).toBe("address_not_public");
    expect(ruleForAddress("10.0.0.1", "http://receiver/", everything)).toBe("allowed");
    expect(ruleForAddress("64:ff9b::8.8.8.8", "http://receiver/", everything)).toBe("allowed");
  });

  test("a range that is none stops the start and says what one looks like", () => {
    expect(() => policyWith({ allowTargets: ["10.0.0.0/33"] })).toThrow(StartupError);
    expect(() => policyWith({ allowTargets: ["lan"] })).toThrow("Try: 10.0.0.0/8");
  });
});

describe("this server itself is refused", () => {
  const own = [
    { host: "127.0.0.1", port: 8080 },
    { host: "relay.example", port: 443 },
    { host: "[2606:4700::1]", port: 8443 },
  ];
  const local = policyWith({ localMode: true, ownListeners: own });
  const lan = policyWith({
    allowTargets: ["127.0.0.0/8", "10.0.0.0/8"],
    ownListeners: [{ host: "0.0.0.0", port: 8080 }],
  });

  test.each([
    ["http://127.0.0.1:8080/v1/ingest", "own_listener"],
    ["http://localhost:8080/", "own_listener"],
    ["http://[::1]:8080/", "own_listener"],
    ["http://127.9.9.9:8080/", "own_listener"],
    ["http://2130706433:8080/", "own_listener"],
    ["https://relay.example/hook", "own_listener"],
    ["https://relay.example:443/hook", "own_listener"],
    ["https://RELAY.example./hook", "own_listener"],
    ["https://[2606:4700:0::1]:8443/", "own_listener"],
    ["http://127.0.0.1:8081/", "allowed"],
    ["http://localhost/", "allowed"],
    ["https://relay.example:8443/hook", "allowed"],
    ["https://other.example/hook", "allowed"],
  ])("as a webhook: %s: %s", (url, rule) => {
    expect(ruleFor(url, local)).toBe(rule);
  });

  test("and those that share its store, as soon as they are known", () => {
    const policy = policyWith({ localMode: true, ownListeners: own });
    const before = policy.version();
    policy.avoid([{ host: "relay-2.example", port: 8443 }]);
    expect(policy.version()).not.toBe(before);
    expect(ruleFor("https://relay-2.example:8443/hook", policy)).toBe("own_listener");
    expect(ruleFor("https://relay.example/hook", policy)).toBe("allowed");
  });

  test.each([
    ["127.0.0.1", "http://sneaky.lan:8080/", "own_listener"],
    ["127.0.0.1", "http://sneaky.lan:8081/", "allowed"],
    ["10.0.0.1", "http://sneaky.lan:8080/", "allowed"],
  ])("as an address dialled, when it listens everywhere: %s for %s: %s", (address, target, rule) => {
    expect(ruleForAddress(address, target, lan)).toBe(rule);
  });
});

describe("this machine is refused", () => {
  const own = new Set(["198.41.5.5", "2a00:1450::5", "10.0.0.5"]);
  const surroundings: Surroundings = { ...nowhere, isOwn: (address) => own.has(address) };
  const on = (options: Partial<AddressPolicyOptions>) =>
    createAddressPolicy({ localMode: false, allowTargets: [], ownListeners: [], ...options }, surroundings);

  test.each([
    ["https://198.41.5.5/", "own_machine"],
    ["https://198.41.5.5:9443/", "own_machine"],
    ["https://0xc6290505/", "own_machine"],
    ["https://[2a00:1450:0:0::5]/", "own_machine"],
    ["https://[::ffff:198.41.5.5]/", "own_machine"],
    ["https://198.41.5.6/", "allowed"],
    ["https://[2a00:1450::6]/", "allowed"],
    ["https://own.example/", "allowed"], // what it resolves to is judged when it is dialled
  ])("as a webhook: %s: %s", (url, rule) => {
    for (const localMode of [false, true]) expect(ruleFor(url, on({ localMode }))).toBe(rule);
  });

  test.each([
    ["10.0.0.5", ["10.0.0.0/8"], "own_machine"],
    ["10.0.0.5", ["10.0.0.5"], "own_machine"],
    ["10.0.0.6", ["10.0.0.0/8"], "allowed"],
    ["::ffff:10.0.0.5", ["::/0"], "own_machine"],
    ["127.0.0.1", ["0.0.0.0/0"], "http_not_allowed"],
    ["127.0.0.1", ["126.0.0.0/7"], "http_not_allowed"],
    ["127.0.0.1", ["127.0.0.0/8"], "allowed"],
    ["127.0.0.1", ["127.0.0.1"], "allowed"],
    ["::1", ["::/0"], "http_not_allowed"],
    ["::1", ["::1"], "allowed"],
    ["0.0.0.0", ["0.0.0.0/0"], "http_not_allowed"],
    ["::", ["::/0"], "http_not_allowed"],
    ["::ffff:127.0.0.1", ["::/0"], "address_not_public"],
    ["::ffff:127.0.0.1", ["::/0", "127.0.0.0/8"], "allowed"],
    ["::ffff:10.1.1.1", ["::/0"], "address_not_public"],
    ["::ffff:10.1.1.1", ["::/0", "10.0.0.0/8"], "allowed"],
    ["::ffff:8.8.8.8", ["::/0"], "allowed"],
  ])("in public mode: %s with %j allowed: %s", (address, allowTargets, rule) => {
    expect(ruleForAddress(address, "http://receiver.lan/", on({ allowTargets }))).toBe(rule);
  });

  test("but in local mode a range that the operator allows reaches it: nobody is outside there", () => {
    const local = on({ localMode: true, allowTargets: ["10.0.0.0/8"] });
    expect(ruleForAddress("10.0.0.5", "http://receiver.lan/", local)).toBe("allowed");
    expect(local.mayKeep("10.0.0.5")).toBe(true);
    expect(on({}).mayKeep("10.0.0.5")).toBe(false);
    expect(on({}).mayKeep("127.0.0.1")).toBe(true);
  });
});

describe("a range that the operator blocks", () => {
  const blockTargets = ["10.9.0.0/16", "8.8.8.8", "2606:4700::/32"];
  const policy = policyWith({ allowTargets: ["10.0.0.0/8", "64:ff9b::/96"], blockTargets });

  test.each([
    ["http://10.9.1.1/", "address_blocked"],
    ["https://8.8.8.8/", "address_blocked"],
    ["https://[2606:4700::1111]/", "address_blocked"],
    ["http://[64:ff9b::10.9.1.1]/", "address_blocked"],
    ["http://[64:ff9b::808:808]/", "address_blocked"],
    ["http://169.254.169.254/", "address_not_public"],
    ["http://10.8.1.1/", "allowed"],
    ["https://8.8.4.4/", "allowed"],
  ])("%s: %s", (url, rule) => {
    expect(ruleFor(url, policy)).toBe(rule);
  });

  test("wins over loopback in local mode", () => {
    const local = policyWith({ localMode: true, blockTargets: ["127.0.0.0/8"] });
    expect(ruleForAddress("127.0.0.1", "http://localhost:9000/", local)).toBe("address_blocked");
  });

  test("and is none stops the start", () => {
    expect(() => policyWith({ blockTargets: ["lan"] })).toThrow('POSTRIDER_BLOCK_TARGETS: "lan" is not');
  });
});

describe("under a NAT64 prefix of this network", () => {
  const nat64 = {
    prefixes: () => prefixesIn(["2a00:1098:2c::192.0.0.170", "fd64::192.0.0.170"]),
    version: () => 0,
    learn: () => Promise.resolve(),
  };
  const policy = createAddressPolicy(
    { localMode: false, allowTargets: ["fd00::/8"], ownListeners: [{ host: "8.8.4.4", port: 443 }] },
    { ...nowhere, isOwn: (address) => address === "198.41.5.5", nat64 },
  );

  test.each([
    ["https://[2a00:1098:2c::8.8.8.8]/", "allowed"],
    ["https://[2a00:1098:2c::10.0.0.1]/", "address_not_public"],
    ["https://[2a00:1098:2c::127.0.0.1]/", "address_not_public"],
    ["https://[2a00:1098:2c::169.254.169.254]/", "address_not_public"],
    ["https://[2a00:1098:2c::198.41.5.5]/", "own_machine"],
    ["https://[2a00:1098:2c::8.8.4.4]/", "own_listener"],
    ["https://[2a00:1098:2c:0:1::10.0.0.1]/", "allowed"], // beside the prefix
    ["http://[fd64::8.8.8.8]/", "allowed"],
    ["http://[fd64::10.0.0.1]/", "address_not_public"],
    ["http://[fd64:1::10.0.0.1]/", "allowed"],
  ])("%s: %s", (url, rule) => {
    expect(ruleFor(url, policy)).toBe(rule);
  });

  test.each([
    [["8.8.8.8"], false],
    [["8.8.8.8", "2a00:1098:2c::1"], true],
    [["fd64::1"], true],
    [["fc00::1"], false],
    [["::1"], false],
    [["64:ff9b::1"], false],
    [["no address"], false],
    [[], false],
  ] as [string[], boolean][])("to judge %j its prefixes are needed: %p", (addresses, isNeeded) => {
    expect(policy.learn(addresses) !== undefined).toBe(isNeeded);
  });
});
