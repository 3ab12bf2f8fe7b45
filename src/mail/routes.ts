import type { NoteAct } from "../audit/note.ts";
import { DomainError, unavailable } from "../domain/errors.ts";
import { type ErasedEndpoint, endpoint, noContent } from "../http/endpoint.ts";
import { failure, invalidRequest } from "../http/error-models.ts";
import { emailAddress } from "../http/fields.ts";
import { jsonObject } from "../http/validation.ts";
import { messageOf } from "../lib/error-message.ts";
import { newId } from "../lib/id.ts";
import { operatorOrigin } from "../operator/origin.ts";
import type { Post } from "./post.ts";

export interface MailRouteDeps {
  /** Null: no SMTP server is set. */
  post: Post | null;
  baseUrl(): string;
  noteAct: NoteAct;
}

/** What `postrider mail test` calls. */
export function mailRoutes({ post, baseUrl, noteAct }: MailRouteDeps): ErasedEndpoint[] {
  return [
    endpoint(
      {
        method: "POST",
        path: "/operator/mail/test",
        tag: "Operator",
        summary: "Send a mail, to see whether that works",
        description: "It is sent at once, and the answer waits until the SMTP server has taken it.",
        access: "operator",
        body: jsonObject({ to: emailAddress }),
        bodyExample: { to: "ada@example.com" },
        idleTimeoutSeconds: 120,
        responses: {
          204: { description: "The SMTP server has taken it." },
          400: invalidRequest("to must be an e-mail address such as ada@example.com."),
          403: failure("No SMTP server is set.", "mail_off", notSet),
          503: failure(
            "The SMTP server did not take it.",
            "mail_failed",
            `The SMTP server did not take the mail: connect ECONNREFUSED 127.0.0.1:587. Try: ${remedies.unreachable}`,
          ),
        },
      },
      async (request) => {
        const { to } = request.body;
        if (!post) throw new DomainError({ kind: "forbidden", code: "mail_off", message: notSet });
        const host = new URL(baseUrl()).host;
        const words = `Mail from ${host} works. This one was asked for with postrider mail test.`;
        const letter = { subject: `Mail from ${host} works`, text: `${words}\n`, html: `<p>${words}</p>` };
        try {
          await post.send(letter, to, `<${newId("mail")}@${new URL(baseUrl()).hostname}>`);
        } catch (error) {
          throw unavailable(
            `The SMTP server did not take the mail: ${messageOf(error)}. Try: ${remedyOf(error)}`,
            ...(["mail_failed", 60] as const),
          );
        }
        await noteAct({ ...operatorOrigin(request), action: "mail.tested" });
        return noContent();
      },
    ),
  ];
}

const remedies = {
  certificate: "check the name in POSTRIDER_SMTP_URL; an authority of your own goes into POSTRIDER_EXTRA_CA_FILE",
  login: "check user and password in POSTRIDER_SMTP_URL, where %, @, : and / are written %25, %40, %3A and %2F",
  refused: "check the address and POSTRIDER_MAIL_FROM",
  unreachable: "check host and port in POSTRIDER_SMTP_URL, and the firewall",
} as const;

/** Goes by the wording: once the password is removed, it is all that is left of what TLS, the mailer and the server say. */
function remedyOf(error: unknown): string {
  const words = messageOf(error);
  if (/certificate|self.signed/i.test(words)) return remedies.certificate;
  if (/^(?:Invalid login|Missing credentials)/.test(words)) return remedies.login;
  return /: [45]\d\d\b/.test(words) ? remedies.refused : remedies.unreachable;
}

const notSet = "No SMTP server is set. Try: POSTRIDER_SMTP_URL and POSTRIDER_MAIL_FROM.";
