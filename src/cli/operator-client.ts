import { userInfo } from "node:os";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { isInUse } from "../folder-lock.ts";
import type { Whereabouts } from "../home.ts";
import { codeOf, messageOf } from "../lib/error-message.ts";
import { networkNamespace } from "../lib/network-namespace.ts";
import { operatorUserHeader } from "../operator/user-header.ts";
import { readPrivate, unreadable } from "../private-files.ts";
import { operatorTokenFile } from "../secrets.ts";
import { readServerFile } from "../server-file.ts";
import { type Answer, call } from "./http-client.ts";
import { refusal } from "./refusal.ts";

/** Talks to the server running on a data directory, using that directory's operator token. */
export interface OperatorClient {
  /** @throws StartupError, or UsageError, with the server's own words when it refuses */
  send(method: string, path: string, body?: unknown): Promise<unknown>;
}

/** @throws StartupError when no server runs on the folder, or none that can be reached from here */
export function createOperatorClient(dataDir: string): OperatorClient {
  const server = runningServer(dataDir);
  if (server === null) throw notRunning(dataDir);
  const token = readToken(dataDir);
  const base = dialable(server.url);

  return {
    async send(method, path, body) {
      let answer: Answer;
      try {
        const headers = { Authorization: `Bearer ${token}`, [operatorUserHeader]: userName() };
        answer = await call(`${base}${path}`, { method, body, headers });
      } catch (error) {
        if (isRefused(error)) throw notRunning(dataDir);
        const reason = messageOf(error);
        throw new StartupError(`The server at ${server.url} did not answer (${reason}). Try: check its log.`);
      }
      if (answer.status >= 200 && answer.status < 300) return answer.json;
      throw refusalOf(answer);
    },
  };
}

/**
 * The server that holds the folder. If it has died, or is in another network, anyone may be listening at its address here, and
 * must not be given the token.
 * @returns null when none holds it
 * @throws NotReached when it is in another network, StartupError when this user may not know
 */
export function runningServer(dataDir: string): Whereabouts | null {
  const isHeld = isInUse(dataDir);
  const server = readServerFile(dataDir);
  if (!isHeld || server === null) return null;
  // One that was started before an update may not have noted its network.
  if (server.network !== undefined && server.network !== networkNamespace()) throw elsewhere(dataDir, server.url);
  return server;
}

/** By number if the user has no name, as in a container; the runtime then calls every user "unknown". */
function userName(): string {
  try {
    const { username, uid } = userInfo();
    return /^[\w.@-]+$/.test(username) && username !== "unknown" ? username : `uid-${uid}`;
  } catch {
    return `uid-${process.getuid?.()}`;
  }
}

/** No server runs on the folder, or none that can be reached from here. */
export class NotReached extends StartupError {}

const notRunning = (dataDir: string) =>
  new NotReached(
    `No server is running on the data directory ${dataDir}. ` +
      "Try: start one with postrider serve, or pass its folder with --data-dir.",
  );

const elsewhere = (dataDir: string, url: string) =>
  new NotReached(
    `The server on the data directory ${dataDir} listens at ${url} in another network namespace, such as that of its ` +
      "container, and cannot be reached from here. Try: run the command where the server runs, for example with docker exec.",
  );

function readToken(dataDir: string): string {
  const path = join(dataDir, operatorTokenFile);
  try {
    return readPrivate(path).trim();
  } catch (error) {
    throw unreadable(path, error);
  }
}

/** "All interfaces" can be listened on everywhere, but not dialled everywhere. */
export const dialable = (url: string) => url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");

const isRefused = (error: unknown) => ["ECONNREFUSED", "ConnectionRefused"].includes(codeOf(error));

function refusalOf({ status, json }: Answer): StartupError {
  const { message, code } = (json ?? {}) as { message?: unknown; code?: unknown };
  if (typeof message !== "string") return new StartupError(`The server answered ${status}. Try: check its log.`);
  return refusal(code === "tenant_not_found" ? `${message} Try: postrider tenant list` : message, { status, code });
}
