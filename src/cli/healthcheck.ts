import { readValues } from "../config.ts";
import { StartupError } from "../domain/errors.ts";
import { codeOf, messageOf } from "../lib/error-message.ts";
import { type Command, settingFlags } from "./command.ts";
import { type Answer, call } from "./http-client.ts";
import { exitCode } from "./io.ts";
import { dialable, runningServer } from "./operator-client.ts";

/** A server that takes longer to answer should not be sent events. */
const patienceMs = 3000;

/** The settings that decide where the server listens. */
const ownFlags: readonly string[] = ["--host", "--port", "--public-url", "--data-dir"];

/** For environments that have no other means to ask: an image without a shell. */
export const healthcheckCommand: Command = {
  words: ["healthcheck"],
  operands: [],
  flags: settingFlags.filter(({ name }) => ownFlags.includes(name)),
  summary: "Check that the server on this machine is ready for events",
  details: `For HEALTHCHECK of a container, and for scripts. It reads the settings that the server reads,
and asks it for /readyz: at POSTRIDER_HEALTH_PORT if that is set, else where it listens, with
or without TLS. Exit code 0: it is ready. Exit code 1: it is not, it does not listen there, or
it did not answer within 3 seconds; the line on standard error says which.`,
  async run({ flags }, io) {
    const { host, port, healthPort, tlsCert, dataDir } = readValues(io.env, flags);
    const plain = healthPort !== null && healthPort > 0;
    const asked =
      plain || port > 0 ? urlOf(plain || tlsCert === null ? "http" : "https", host, plain ? healthPort : port) : null;
    const base = asked ?? runningServer(dataDir)?.url;
    if (base === undefined) {
      throw new StartupError(
        `No server is running on the data directory ${dataDir}, which is where one that picks its own port is found. ` +
          "Try: start it, or set POSTRIDER_PORT.",
      );
    }
    const url = `${dialable(base)}/readyz`;
    const answer = await ask(url);
    if (answer.status === 200) {
      io.out(`ready: ${url}`);
      return exitCode.ok;
    }
    io.err(`postrider: not ready: ${reasonOf(answer)} (${url})`);
    return exitCode.failed;
  },
};

const urlOf = (scheme: string, host: string, port: number) =>
  `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}`;

async function ask(url: string): Promise<Answer> {
  try {
    return await call(url, { withinMs: patienceMs });
  } catch (error) {
    if (url.startsWith("http:") && codeOf(error) === "ECONNRESET") {
      throw new StartupError(
        `${url} closes the connection, as a server with TLS does. ` +
          "Try: give this command the settings that the server has, with POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY.",
      );
    }
    throw new StartupError(
      `${url} does not answer (${messageOf(error)}). ` +
        "Try: start the server, or give this command the settings that the server has.",
    );
  }
}

/** The server's own words. */
function reasonOf({ status, json }: Answer): string {
  const { message } = typeof json === "object" && json !== null ? (json as { message?: unknown }) : {};
  return typeof message === "string" ? message : `it answered ${status}`;
}
