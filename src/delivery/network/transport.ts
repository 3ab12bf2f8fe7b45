import { isIP, type LookupFunction } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import { forgetOldest } from "../../lib/forget-oldest.ts";
import type { Interruption } from "../../lib/interruption.ts";
import { type AddressPolicy, literalIn, portOf, withoutTrailingDot } from "./address.ts";
import { createConnectionPool } from "./connection-pool.ts";
import {
  Exchange,
  type LiteralCheck,
  type Outcome,
  type OutgoingRequest,
  type Shared,
  type Target,
} from "./exchange.ts";
import { LookupError } from "./no-response.ts";
import { createResolver, type Resolver } from "./resolver.ts";
import { createTunnels } from "./tunnel.ts";

export type { Outcome, OutgoingRequest } from "./exchange.ts";
export type { BodyRead } from "./response-body.ts";

/**
 * The only outbound HTTP of deliveries (architecture, "Who may import whom"). One `send` is one attempt: a POST to an
 * address that the policy allows, answered by a status or by the reason why there is none. No redirect is followed, nothing
 * is decompressed, no proxy is used except the one in the settings.
 *
 * Not `fetch`: it has a cap of 256 requests in flight for the whole process, so that one slow receiver stops them all, and
 * no way to say which address is dialled (hazards, sections 1.4 and 3). Not `node:http`: see `Connection`.
 */
export interface Transport<Request extends OutgoingRequest = OutgoingRequest> {
  /**
   * Makes one attempt. A failure is a value, never a rejection; it throws only for a request that cannot be written
   * (a line break in a header), which is a fault of the caller. Any number may be in flight.
   */
  send(request: Request, signal?: Interruption): Promise<Outcome>;
  /** Ends every connection immediately; attempts in flight, and later ones, come back as `interrupted`. */
  close(): void;
}

export interface TransportOptions {
  policy: AddressPolicy;
  clock: Clock;
  /**
   * For the whole attempt: DNS, connecting, TLS, sending and the head; whatever is left is for the body.
   * @default deliveryTimeoutMs
   */
  timeoutMs?: number;
  /** @default the system's */
  dnsServers?: readonly string[];
  /** Certificate authorities to trust in addition to the usual ones, PEM. */
  extraCa?: string;
  /**
   * `http://user:password@host:port`: it makes every connection except those to loopback, so it resolves the names too.
   * The policy then judges names and literal addresses, and the proxy decides the rest. @default none
   */
  proxyUrl?: string;
  /** Told for each request whether it goes out on a kept connection, for the metrics. */
  onConnection?: (reused: boolean) => void;
}

/** Specification, "Acknowledgement and retry rules", 4. */
export const deliveryTimeoutMs = 10_000;
/** If a name has more, only the first are tried: each one that does not answer costs half a second of the attempt. */
const maxDialledAddresses = 6;
/** A target is about 1 KB; the cache saves parsing and judging the URL again for every delivery (4 µs). */
const maxCachedTargets = 4_096;

export function createTransport(options: TransportOptions): Transport {
  const { policy, clock, timeoutMs = deliveryTimeoutMs, dnsServers, extraCa, proxyUrl, onConnection } = options;
  const resolver = createResolver({ clock, ...(dnsServers && { dnsServers }) });
  const tunnels = proxyUrl === undefined ? null : createTunnels({ proxyUrl, clock, timeoutMs });
  const pool = createConnectionPool({
    clock,
    tunnels,
    // All connections lead to the proxy, and where that runs is up to the operator.
    ...(tunnels === null && { mayKeep: policy.mayKeep }),
    ...(extraCa !== undefined && { extraCa }),
  });
  const shared: Shared = { clock, pool, timeoutMs, onConnection, isDirect: tunnels === null, closed: false };
  const targets = new Map<string, Target>();
  let judgedAt = policy.version();

  function targetOf(url: string): Target {
    const version = policy.version();
    if (version !== judgedAt) targets.clear();
    judgedAt = version;
    let target = targets.get(url);
    if (target === undefined) {
      if (targets.size >= maxCachedTargets) forgetOldest(targets);
      target = readTarget(url, policy, resolver);
      targets.set(url, target);
    }
    return target;
  }

  return {
    send(request, signal) {
      return new Promise((resolve) => {
        new Exchange(shared, targetOf(request.url), request, signal, resolve).start();
      });
    },
    close() {
      shared.closed = true;
      pool.close();
      resolver.close();
    },
  };
}

/** Judges the URL again: settings may have changed since it was saved. An address in it never reaches a `lookup`. */
function readTarget(text: string, policy: AddressPolicy, resolver: Resolver): Target {
  const verdict = policy.checkUrl(text);
  if (!verdict.ok) return { allowed: false, refusal: refusalFor(verdict.rule) };
  const { url } = verdict;
  const literal = literalIn(url.hostname);
  const host = literal ?? withoutTrailingDot(url.hostname);
  return {
    allowed: true,
    origin: url.origin,
    headStart: `POST ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\n`,
    ...(literal !== undefined && { literal: createLiteralCheck(literal, url, policy) }),
    isSecure: url.protocol === "https:",
    host,
    port: portOf(url),
    // RFC 6066, section 3: no literal addresses and no final dot in the server name.
    servername: literal === undefined ? host : "",
    lookup: createCheckedLookup(url, policy, resolver),
  };
}

/** An address in the URL is dialled without a `lookup`, and what it means may have changed since the URL was read. */
function createLiteralCheck(literal: string, url: URL, policy: AddressPolicy): LiteralCheck {
  let judged: { version: number; refusal: LookupError | undefined } | undefined;
  return {
    learn: () => policy.learn([literal]),
    refusal() {
      const version = policy.version();
      if (judged?.version !== version) {
        const verdict = policy.checkAddress(literal, url);
        judged = { version, refusal: verdict.ok ? undefined : refusalFor(verdict.rule) };
      }
      return judged.refusal;
    },
  };
}

/**
 * The `lookup` of a target: every address in the answer is judged, a single forbidden one refuses the attempt, and only
 * judged addresses are handed over. So what is dialled is what was judged, even if the name changes in between.
 */
function createCheckedLookup(url: URL, policy: AddressPolicy, resolver: Resolver): LookupFunction {
  async function resolve(hostname: string) {
    const addresses = await resolver.resolve(hostname);
    await policy.learn(addresses);
    return addresses;
  }

  return (hostname, { all }, callback) => {
    resolve(hostname).then(
      (addresses) => {
        for (const address of addresses) {
          const verdict = policy.checkAddress(address, url);
          if (!verdict.ok) return callback(refusalFor(verdict.rule), []);
        }
        const dialled = addresses.slice(0, maxDialledAddresses).map((address) => ({ address, family: isIP(address) }));
        if (all) callback(null, dialled);
        else callback(null, dialled[0]?.address ?? "", dialled[0]?.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

const refusalFor = (rule: string) =>
  new LookupError("address_not_public", rule === "address_not_public" ? undefined : rule.replaceAll("_", " "));
