import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface ReceivedMail {
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string | null;
  readonly secure: boolean;
  /** As received. */
  readonly raw: string;
  header(name: string): string;
  /** The plain-text part. */
  readonly text: string;
  readonly html: string;
}

export interface TestSmtpServer {
  readonly port: number;
  readonly mails: readonly ReceivedMail[];
  /** Resolves with the mail of this number, once it has arrived. */
  mail(n: number): Promise<ReceivedMail>;
  /** What it answers to every mail from now on; null: it accepts them. */
  refuse(words: string | null): void;
  stop(): Promise<void>;
}

/** A third-party SMTP server (`smtp-server`), on its own port. By default without TLS and without users. */
export async function startSmtpServer(options: SMTPServerOptions = {}): Promise<TestSmtpServer> {
  const mails: ReceivedMail[] = [];
  const waiting: (() => void)[] = [];
  let refusal: string | null = null;
  const server = new SMTPServer({
    authOptional: true,
    ...(!options.secure && !options.cert && { disabledCommands: ["STARTTLS"] }),
    onAuth: ({ username, password }, _, done) =>
      done(password === "s3cret&" ? null : new Error("No"), { user: username }),
    ...options,
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        if (refusal !== null) return done(new Error(refusal));
        const { mailFrom, rcptTo } = session.envelope;
        const raw = Buffer.concat(chunks).toString("utf8");
        mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          user: session.user ?? null,
          secure: session.secure,
          raw,
          header: (name) =>
            new RegExp(`^${name}: (.*(?:\r\n[ \t].*)*)`, "im").exec(raw)?.[1]?.replace(/\r\n\s/g, " ") ?? "",
          text: partOf(raw, "text/plain"),
          html: partOf(raw, "text/html"),
        });
        done(null);
        for (const tell of waiting.splice(0)) tell();
      });
    },
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.server.address() as AddressInfo).port,
    mails,
    async mail(n) {
      while (mails[n] === undefined) await new Promise<void>((resolve) => waiting.push(resolve));
      return mails[n] as ReceivedMail;
    },
    refuse(words) {
      refusal = words;
    },
    stop: () => new Promise((resolve) => server.close(resolve)),
  };
}

function partOf(raw: string, type: string): string {
  const [head = "", ...rest] = (raw.split(`Content-Type: ${type}`)[1] ?? "").split("\r\n\r\n");
  const body = (rest.join("\r\n\r\n").split("\r\n--")[0] ?? "").replaceAll("\r\n", "\n");
  if (/base64/i.test(head)) return Buffer.from(body, "base64").toString("utf8");
  if (!/quoted-printable/i.test(head)) return body;
  const bytes = body
    .replace(/=\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}
