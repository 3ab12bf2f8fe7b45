import net, { type Socket } from "node:net";
import type { Clock } from "../../lib/clock.ts";
import { LookupError } from "./no-response.ts";

/** Opens tunnels through an HTTP proxy to hosts that only it can reach (CONNECT; RFC 9110, section 9.3.6). */
export interface Tunnels {
  /** The tunnel is plain: a caller that wants TLS negotiates it inside, with the host and not with the proxy. */
  open(target: { host: string; port: number }, callback: (error: Error | null, way?: Socket) => void): void;
  /** Aborts those still being opened. */
  close(): void;
}

export interface TunnelsOptions {
  /** `http://user:password@host:port`. */
  proxyUrl: string;
  clock: Clock;
  /**
   * Time of an attempt: half of it to reach the proxy, three quarters until the tunnel is open. Both are over before the
   * attempt is, so that the proxy's silence is not taken for a receiver's.
   */
  timeoutMs: number;
}

const maxHeadBytes = 16 * 1024;
const headEnd = "\r\n\r\n";
const statusLine = /^HTTP\/1\.[01] (\d{3})(?: |\r)/;

const failed = (detail: string) => new LookupError("proxy_failed", detail);

export function createTunnels({ proxyUrl, clock, timeoutMs }: TunnelsOptions): Tunnels {
  const url = new URL(proxyUrl);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = Number(url.port || 80);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const authorization =
    url.username === "" ? "" : `Proxy-Authorization: Basic ${Buffer.from(credentials).toString("base64")}\r\n`;
  const opening = new Set<Socket>();

  return {
    open(target, callback) {
      const way = net.connect({ host, port, autoSelectFamily: true });
      opening.add(way);
      let head = "";
      let isConnected = false;
      const cancelConnecting = clock.after(timeoutMs / 2, () => isConnected || end(failed("it cannot be reached")));
      const cancelTimer = clock.after(timeoutMs * 0.75, () => end(failed("it did not answer in time")));

      function end(error: Error | null): void {
        if (!opening.delete(way)) return;
        cancelConnecting();
        cancelTimer();
        way.off("data", onData);
        way.off("close", onClose);
        if (error === null) callback(null, way);
        else {
          way.destroy();
          callback(error);
        }
      }
      // This listener stays: the connection may break before anyone else listens.
      const onError = () => end(failed(isConnected ? "it closed the connection" : "it cannot be reached"));
      const onClose = () => end(failed("it closed the connection"));

      function onData(bytes: Buffer): void {
        head += bytes.toString("latin1");
        const at = head.indexOf(headEnd);
        if (at < 0 && head.length < maxHeadBytes) return;
        const status = Number(statusLine.exec(head)?.[1] ?? 0);
        // No host speaks before we do: anything that comes along with the answer is not from the host.
        const isOpen = status >= 200 && status < 300 && at + headEnd.length === head.length;
        if (isOpen) end(null);
        else end(failed(status >= 300 ? `it answered ${status}` : "its answer makes no sense"));
      }

      way.on("connect", () => {
        isConnected = true;
        const authority = `${target.host.includes(":") ? `[${target.host}]` : target.host}:${target.port}`;
        way.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${authorization}\r\n`);
      });
      way.on("data", onData);
      way.on("error", onError);
      way.on("close", onClose);
    },
    close() {
      for (const way of [...opening]) way.destroy();
    },
  };
}
