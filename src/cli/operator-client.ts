import { userInfo } from "node:os";
import { join } from "node:path";
import { operatorTokenFile, readServerFile } from "../data-dir.ts";
import { StartupError } from "../domain/errors.ts";
import type { Whereabouts } from "../home.ts";
import { codeOf, messageOf } from "../lib/error-message.ts";
import { operatorUserHeader } from "../operator/user-header.ts";
import { readPrivate } from "../private-files.ts";
import { type Answer, call } from "./http-client.ts";
import { refusal } from "./refusal.ts";

/** Talks to the server running on a data directory, using that directory's operator token. */
export interface OperatorClient {
  /** @throws StartupError, or UsageError, with the server's own words when it refuses */
  send(method: string, path: string, body?: unknown): Promise<unknown>;
}

/** @throws StartupError when no server runs on the folder */
export function createOperatorClient(dataDir: string): OperatorClient {
  const server = runningServer(dataDir);
  if (server === null) throw new NotRunning(dataDir);
  const token = readToken(dataDir);
  const base = dialable(server.url);

  return {
    async send(method, path, body) {
      let answer: Answer;
      try {
        const headers = { Authorization: `Bearer ${token}`, [operatorUserHeader]: userName() };
        answer = await call(`${base}${path}`, { method, body, headers });
      } catch (error) {
        if (isRefused(error)) throw new NotRunning(dataDir);
        const reason = messageOf(error);
        throw new StartupError(`The server at ${server.url} did not answer (${reason}). Try: check its log.`);
      }
      if (answer.status >= 200 && answer.status < 300) return answer.json;
      throw refusalOf(answer);
    },
  };
}

/** If the server has died, anyone may be listening on its port now, and must not be given the token. */
export function runningServer(dataDir: string): Whereabouts | null {
  const server = readServerFile(dataDir);
  return server !== null && isAlive(server) ? server : null;
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
export class NotRunning extends StartupError {
  constructor(dataDir: string) {
    super(
      `No server is running on the data directory ${dataDir}. ` +
        "Try: start one with postrider serve, or pass its folder with --data-dir.",
    );
  }
}

function isAlive({ pid }: Whereabouts): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // The process is alive, and belongs to another user.
    return codeOf(error) === "EPERM";
  }
}

function readToken(dataDir: string): string {
  const path = join(dataDir, operatorTokenFile);
  try {
    return readPrivate(path).trim();
  } catch {
    throw new StartupError(`${path} cannot be read. Try: run the command as the user that runs the server.`);
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
