import type { ClientConfig } from "../../config.ts";
import { StartupError } from "../../domain/errors.ts";
import { isLoopbackHost } from "../../lib/cidr.ts";
import { clientSettings } from "../../settings.ts";
import type { Flag } from "../arguments.ts";
import type { Io } from "../io.ts";
import type { Credentials } from "./session.ts";

/** Flags of a command that is a client of a server. Secrets are not among them, because a process list shows flags. */
export const clientFlags: readonly Flag[] = [
  { name: "--server", value: "URL", doc: docOf(clientSettings.url) },
  { name: "--login", value: "ID", doc: docOf(clientSettings.login) },
];

function docOf({ doc, env, default: byDefault }: { doc: string; env: string; default: string }): string {
  return `${doc} (${env}${byDefault === "" ? "" : `; default ${byDefault}`})`;
}

/** How the help explains signing in, in lines of at most 80 characters. */
export const signInDetails = `Signs in with POSTRIDER_LOGIN (or --login) and POSTRIDER_PASSWORD, and prompts for
whatever is missing. POSTRIDER_TOKEN, a session token, replaces both. The server may be
remote: HTTPS_PROXY, HTTP_PROXY and NO_PROXY are honoured, and NODE_EXTRA_CA_CERTS
names a PEM file with your own certificate authority.`;

/** Who signs in, from the environment or from the user at the terminal. @throws StartupError with what to do */
export async function readCredentials(
  config: Pick<ClientConfig, "login" | "password" | "token" | "typedLogin">,
  io: Pick<Io, "ask" | "askSecretly">,
): Promise<Credentials> {
  const { token, typedLogin } = config;
  if (token !== null && (config.login === null || config.password === null)) return { token, login: null, typedLogin };
  const loginId = config.login ?? (await io.ask("Account (tenant id or e-mail): "))?.trim();
  if (!loginId) {
    throw new StartupError("No account to sign in to. Try: POSTRIDER_LOGIN=<tenant id> POSTRIDER_PASSWORD=<password>");
  }
  const password = config.password ?? (await io.askSecretly(`Password of ${loginId}: `));
  if (!password) {
    throw new StartupError(`No password for ${loginId}. Try: POSTRIDER_PASSWORD=<password>`);
  }
  return { token, login: { loginId, password }, typedLogin };
}

/** Warns about a password that would travel unencrypted. */
export function warnOfPlainHttp(url: string, io: Pick<Io, "err">): void {
  const { protocol, hostname } = new URL(url);
  if (protocol === "https:" || isLoopbackHost(hostname)) return;
  io.err(`Warning: the connection to ${url} is not encrypted, so others can read it. Try: https`);
}
