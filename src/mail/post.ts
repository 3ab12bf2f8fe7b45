import { rootCertificates } from "node:tls";
import { messageOf } from "../lib/error-message.ts";
import type { Letter } from "./letters.ts";

/** The only way out for mail: an SMTP server that the operator has configured. */
export interface Post {
  /** Resolves once the SMTP server has taken it. @throws Error with the server's words, or the reason why there are none */
  send(letter: Letter, to: string, id: string): Promise<void>;
}

/** Servers have been known to echo what they are told. */
const withoutSecret = (text: string, secret: string | undefined): string =>
  secret === undefined || secret === "" ? text : text.replaceAll(secret, "********");

export interface PostSettings {
  /** `smtp://` or `smtps://`, with user and password. */
  readonly smtpUrl: string;
  readonly from: string;
}

/** A slow SMTP server counts as none at all: the next try is a minute later. */
const connectMs = 10_000;
const silenceMs = 30_000;

/**
 * Over `smtp:` the connection is upgraded to TLS where the server offers it; a password is never sent without TLS, except to
 * this machine.
 * @param extraCa certificates that are trusted besides the usual ones, PEM
 */
export function createPost({ smtpUrl, from }: PostSettings, extraCa: string | null = null): Post {
  const { protocol, hostname, port, username, password } = new URL(smtpUrl);
  const isImplicit = protocol === "smtps:";
  const host = hostname.replace(/^\[|\]$/g, "");
  const isHere = /^(?:localhost|127\.\d+\.\d+\.\d+|::1)$/.test(host);
  const auth = username === "" ? null : { user: decodeURIComponent(username), pass: decodeURIComponent(password) };

  return {
    async send({ subject, text, html }, to, id) {
      // Not loaded at the start: it takes a while, and most servers send mail only now and then.
      const { createTransport } = await import("nodemailer");
      const transport = createTransport({
        host,
        port: port === "" ? (isImplicit ? 465 : 587) : Number(port),
        secure: isImplicit,
        requireTLS: auth !== null && !isHere,
        ...(auth && { auth }),
        ...(extraCa !== null && { tls: { ca: [...rootCertificates, extraCa] } }),
        connectionTimeout: connectMs,
        greetingTimeout: connectMs,
        socketTimeout: silenceMs,
        dnsTimeout: connectMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      });
      try {
        await transport.sendMail({
          from,
          // As an object it is a single address, whatever it contains.
          to: { name: "", address: to },
          subject,
          text,
          html,
          messageId: id,
          headers: { "Auto-Submitted": "auto-generated", "X-Auto-Response-Suppress": "All" },
        });
      } catch (error) {
        throw new Error(withoutSecret(messageOf(error), auth?.pass));
      } finally {
        transport.close();
      }
    },
  };
}
