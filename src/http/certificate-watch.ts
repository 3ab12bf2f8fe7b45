import { readFileSync } from "node:fs";
import type { TlsSettings } from "../config.ts";
import { type CertificatePair, describePair } from "../lib/certificate.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";

/** Keeps the listener's certificate in step with its files, so that a renewal needs no restart. */
export interface CertificateWatch {
  start(): void;
  stop(): void;
  /**
   * Reads the files now, or as soon as the listener can change. Their content is either taken into use, or refused with a log
   * line and the current certificate stays.
   */
  reload(): void;
}

export interface CertificateWatchDeps {
  tls: TlsSettings;
  clock: Clock;
  log: Log;
  /** Whether the listener can take another certificate now. Until it can, the files wait. */
  canChange(): boolean;
  /** From now on handshakes use this pair. @throws when the listener does not take it */
  use(pair: CertificatePair): void;
}

/** Contents are compared, not times: renewal by a symlink, as container platforms do it, does not change the file's time. */
const lookEveryMs = 10_000;
const askAgainMs = 1_000;

export function createCertificateWatch({ tls, clock, log, canChange, use }: CertificateWatchDeps): CertificateWatch {
  let inUse: CertificatePair = tls;
  /** What the last look found, if it differed from what is in use. */
  let found: CertificatePair | null = null;
  let refused: CertificatePair | null = null;
  let cancelTimer = () => {};
  let cancelReload = () => {};

  const read = (): CertificatePair => ({
    cert: readFileSync(tls.certFile, "utf8"),
    key: readFileSync(tls.keyFile, "utf8"),
  });

  function take(pair: CertificatePair): void {
    const { subject, validTo } = describePair(pair);
    use(pair);
    inUse = pair;
    refused = null;
    log.write("info", "tls.reloaded", { subject, validTo });
    warnIfExpired(validTo);
  }

  /** An expired certificate is well formed, yet clients refuse it. */
  function warnIfExpired(validTo: string): void {
    if (Date.parse(validTo) > clock.now()) return;
    log.write("warn", "tls.expired", { validTo, message: "Clients refuse the certificate. Try: renew it" });
  }

  const refuse = (error: unknown) =>
    log.write("error", "tls.refused", {
      message: `${messageOf(error)}; the current certificate stays in use. Try: fix the files, then send SIGHUP`,
    });

  /** A pair is two files, so it counts only when two looks in a row have found the same. */
  function look(): void {
    if (!canChange()) return;
    let pair: CertificatePair;
    try {
      pair = read();
    } catch {
      // During a renewal one of the files may be missing for a moment; if it stays missing, the next start reports it.
      return;
    }
    const isSettled = isSame(pair, found);
    found = isSame(pair, inUse) ? null : pair;
    if (found === null || !isSettled || isSame(pair, refused)) return;
    try {
      take(pair);
    } catch (error) {
      refused = pair;
      refuse(error);
    }
  }

  function lookLater(): void {
    cancelTimer = clock.after(lookEveryMs, () => {
      look();
      lookLater();
    });
  }

  function reload(): void {
    cancelReload();
    if (!canChange()) {
      cancelReload = clock.after(askAgainMs, reload);
      return;
    }
    try {
      const pair = read();
      if (isSame(pair, inUse)) log.write("info", "tls.unchanged");
      else take(pair);
    } catch (error) {
      refuse(error);
    }
  }

  return {
    start() {
      warnIfExpired(describePair(inUse).validTo);
      lookLater();
    },
    stop() {
      cancelTimer();
      cancelReload();
    },
    reload,
  };
}

const isSame = (one: CertificatePair, other: CertificatePair | null) =>
  one.cert === other?.cert && one.key === other.key;
