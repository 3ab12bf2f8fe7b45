import { Resolver as CaresResolver } from "node:dns/promises";
import { readFileSync } from "node:fs";
import type { Clock } from "../../lib/clock.ts";
import { codeOf } from "../../lib/error-message.ts";
import { LookupError } from "./no-response.ts";

/** Turns host names into addresses. It judges nothing: the address policy judges every address it returns. */
export interface Resolver {
  /** At least one address, IPv4 first. Rejects with a `LookupError` after 5 s at the latest. */
  resolve(hostname: string): Promise<readonly string[]>;
  /**
   * What the name servers say about its IPv6 addresses, and nothing else: no addresses is an answer. Rejects when there
   * is no answer.
   */
  resolve6(hostname: string): Promise<readonly string[]>;
  close(): void;
}

export interface ResolverOptions {
  clock: Clock;
  /** `1.1.1.1`, `127.0.0.1:5353`, `[::1]:5353`; the system's when empty. */
  dnsServers?: readonly string[];
  /** @default the system's */
  hostsFile?: string;
}

/** Half of an attempt (hazards, section 1.3), which leaves time to connect. */
const resolveTimeoutMs = 5_000;
/** For one try of c-ares, which makes two: a lost packet costs one of them. */
const tryTimeoutMs = 2_000;
/**
 * How long the slower family may still take once the other one has addresses. Some name servers drop AAAA queries, and
 * waiting out the 5 s for each attempt there would use up half of it (RFC 8305, section 3, waits 50 ms; we allow more
 * because nobody is watching a connection, unlike a page view).
 */
const familyGraceMs = 500;
/**
 * c-ares keeps answers for their time to live, up to an hour, and always keeps for an hour that a name has no address of
 * a family: too long for a tenant who has just added the record. A new channel (50 µs) starts empty and rereads which
 * name servers the machine has.
 */
const channelAgeMs = 30_000;
/** The hosts file is read again once its copy is older than this, so that an edit needs no restart. */
const hostsAgeMs = 5_000;

const systemHostsFile = process.platform === "win32" ? "C:\\Windows\\System32\\drivers\\etc\\hosts" : "/etc/hosts";

/** RFC 6761, section 6.3: localhost is loopback and is never asked of DNS. */
const loopback: readonly string[] = ["127.0.0.1", "::1"];

/**
 * Queries the name servers itself, through c-ares: `dns.lookup` runs in a small thread pool, which one tenant's slow name
 * servers could fill for everyone. c-ares does not read the hosts file, so that is done here.
 */
export function createResolver({ clock, dnsServers = [], hostsFile = systemHostsFile }: ResolverOptions): Resolver {
  let channel = openChannel();
  let channelOpenedAtMs = clock.monotonicMs();

  let hosts: ReadonlyMap<string, string[]> = new Map();
  let hostsReadAtMs = Number.NEGATIVE_INFINITY;

  /** A burst to a new host asks once. */
  const asking = new Map<string, Promise<readonly string[]>>();

  function resolve(hostname: string): Promise<readonly string[]> {
    if (hostname === "localhost") return Promise.resolve(loopback);
    const listed = readHosts().get(hostname);
    if (listed !== undefined) return Promise.resolve(listed);

    const asked = asking.get(hostname);
    if (asked !== undefined) return asked;
    const answer = ask(hostname).finally(() => asking.delete(hostname));
    asking.set(hostname, answer);
    return answer;
  }

  function readHosts(): ReadonlyMap<string, string[]> {
    const nowMs = clock.monotonicMs();
    if (nowMs - hostsReadAtMs > hostsAgeMs) {
      hosts = parseHosts(hostsFile);
      hostsReadAtMs = nowMs;
    }
    return hosts;
  }

  function openChannel(): CaresResolver {
    const opened = new CaresResolver({ timeout: tryTimeoutMs, tries: 2 });
    if (dnsServers.length > 0) opened.setServers(dnsServers);
    return opened;
  }

  function currentChannel(): CaresResolver {
    const nowMs = clock.monotonicMs();
    if (nowMs - channelOpenedAtMs > channelAgeMs) {
      channel = openChannel(); // the old one ends with its last query
      channelOpenedAtMs = nowMs;
    }
    return channel;
  }

  /** Queries both families in parallel; a failure of one does not spoil the addresses of the other. */
  function ask(hostname: string): Promise<readonly string[]> {
    return new Promise((resolve, reject) => {
      const found: [string[], string[]] = [[], []];
      let failure = "";
      let open = 2;
      let cancelTimer = clock.after(resolveTimeoutMs, finish);

      function finish() {
        cancelTimer();
        const addresses = found.flat();
        if (addresses.length > 0) resolve(addresses);
        else reject(new LookupError("dns_failed", open > 0 ? "name servers did not answer in time" : failure));
      }

      function take(family: 0 | 1, addresses: string[]) {
        found[family] = addresses;
        open--;
        if (open === 0) return finish();
        if (addresses.length === 0) return;
        cancelTimer();
        cancelTimer = clock.after(familyGraceMs, finish);
      }

      const fail = (family: 0 | 1) => (error: unknown) => {
        failure = worseOf(failure, wordsFor(error));
        take(family, []);
      };

      const cares = currentChannel();
      cares.resolve4(hostname).then((addresses) => take(0, addresses), fail(0));
      cares.resolve6(hostname).then((addresses) => take(1, addresses), fail(1));
    });
  }

  return {
    resolve,
    resolve6: (hostname) =>
      currentChannel()
        .resolve6(hostname)
        .catch((error: unknown) => {
          if (wordsFor(error) === unknownName) return [];
          throw error;
        }),
    close: () => channel.cancel(),
  };
}

const unknownName = "name does not exist";

function wordsFor(error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOTFOUND" || code === "ENODATA") return unknownName;
  return code === "ETIMEOUT" ? "name servers did not answer in time" : "name servers failed";
}

/** "Does not exist" is only true when both families say so. */
const worseOf = (one: string, other: string) => (one !== "" && one !== unknownName ? one : other);

/** hosts(5): an address, then its names; `#` starts a comment. A missing file has no names. */
function parseHosts(path: string): ReadonlyMap<string, string[]> {
  const hosts = new Map<string, string[]>();
  for (const line of readText(path).split("\n")) {
    const [address, ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
    if (address === undefined) continue;
    for (const name of names) {
      const key = name.toLowerCase();
      hosts.set(key, [...(hosts.get(key) ?? []), address]);
    }
  }
  return hosts;
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
